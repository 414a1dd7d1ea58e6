"""Calls every operation of the kit with transmission-rpc, and prints the results as JSON.

The argument is the URL.
Times, folders and free space are left out, because they differ between two daemons.
"""

import json
import sys
import tempfile
import urllib.parse

import requests
import transmission_rpc

url = urllib.parse.urlsplit(sys.argv[1])
client = transmission_rpc.Client(host=url.hostname, port=url.port, path=url.path)
folder = tempfile.mkdtemp()
results = {}
VARYING = {"addedDate", "activityDate", "downloadDir", "torrentFile", "startDate", "doneDate", "etaIdle", "eta", "secondsSeeding", "secondsDownloading"}
VARYING |= {"config-dir", "download-dir", "download-dir-free-space", "incomplete-dir", "session-id", "secondsActive", "sessionCount", "status", "editDate", "error", "errorString"}
VARYING |= {"lastAnnounceStartTime", "lastAnnounceTime", "nextAnnounceTime", "nextScrapeTime", "announceState", "recheckProgress", "queuePosition"}


def stable(value):
    if isinstance(value, dict):
        return {name: stable(item) for name, item in sorted(value.items()) if name not in VARYING}
    return [stable(item) for item in value] if isinstance(value, list) else value


def call(name, body):
    try:
        result = stable(body())
    except transmission_rpc.TransmissionError as error:
        result = {"error": error.message, "response": error.response and error.response["result"]}
    results[f"{len(results)} {name}"] = result


def torrent(name):
    info = b"d6:lengthi4e4:name%d:%s12:piece lengthi16384e6:pieces20:" % (len(name), name.encode()) + b"x" * 20 + b"e"
    return b"d8:announce28:http://127.0.0.1:1/announce/4:info" + info + b"e"


def raw(message):
    """Posts a message that the client has no function for."""
    session = requests.post(sys.argv[1], json={"method": "session-get"})
    headers = {"x-transmission-session-id": session.headers["x-transmission-session-id"]}
    return [session.status_code, requests.post(sys.argv[1], json=message, headers=headers).json()]


def fields_of(*args, **more):
    return [one.fields for one in client.get_torrents(*args, **more)]


call("session", lambda: client.get_session().fields)
call("stats", lambda: client.session_stats().fields)
call("space", lambda: isinstance(client.free_space("/tmp"), int))
call("no_space", lambda: client.free_space("/none"))
call("add", lambda: client.add_torrent(torrent("one"), download_dir=folder, paused=True, peer_limit=7, bandwidth_priority=1).fields)
call("add_again", lambda: client.add_torrent(torrent("one"), download_dir=folder, paused=True).fields)
call("add_two", lambda: client.add_torrent(torrent("two"), download_dir=folder, paused=True, files_unwanted=[0]).fields)
call("add_magnet", lambda: client.add_torrent("magnet:?xt=urn:btih:" + "ab" * 20 + "&dn=three", paused=True, download_dir=folder).fields)
call("add_bad", lambda: client.add_torrent(b"none"))
call("get", fields_of)
call("get_one", lambda: fields_of([1]))
call("get_fields", lambda: fields_of([1, 2], arguments=["id", "name", "hashString", "peer-limit", "totalSize"]))
call("get_hash", lambda: client.get_torrent("ab" * 20, arguments=["id", "name", "isFinished"]).fields)
call("get_missing", lambda: fields_of([99]))
call("recent", lambda: [one.fields for one in client.get_recently_active_torrents(arguments=["id", "name"])[0]])
call("set", lambda: client.change_torrent([1], bandwidth_priority=-1, download_limit=50, download_limited=True, labels=["a", "b_c"], priority_high=[0], seed_ratio_limit=1.5, seed_ratio_mode=1, peer_limit=9))
call("set_missing", lambda: client.change_torrent([99], download_limit=1))
call("changed", lambda: fields_of([1], arguments=["bandwidthPriority", "downloadLimit", "downloadLimited", "labels", "priorities", "seedRatioLimit", "seedRatioMode", "peer-limit"]))
call("set_all", lambda: raw({"method": "torrent-set", "arguments": {"uploadLimit": 8, "files-wanted": []}, "tag": 3})[1])
call("rename", lambda: client.rename_torrent_path(1, "one", "uno"))
call("rename_missing", lambda: client.rename_torrent_path(1, "none", "uno"))
call("move", lambda: client.move_torrent_data([1], tempfile.mkdtemp()))
for action in ("start_torrent", "stop_torrent", "verify_torrent", "reannounce_torrent", "queue_top", "queue_up", "queue_down", "queue_bottom"):
    call(action, lambda action=action: getattr(client, action)([2]))
call("start_now", lambda: client.start_torrent_now([2]))
call("start_all", lambda: client.start_torrent())
call("stop_all", lambda: raw({"method": "torrent-stop", "tag": 4})[1])
call("set_session", lambda: client.set_session(alt_speed_down=77, download_queue_size=9, seed_ratio_limit=3.5, seed_ratio_limited=True, encryption="required"))
call("session_changed", lambda: client.get_session().fields)
call("session_fields", lambda: raw({"method": "session-get", "arguments": {"fields": ["version", "rpc-version", "seedRatioLimit"]}, "tag": 5}))
call("groups", lambda: client.get_groups())
call("group", lambda: client.set_group("slow", speed_limit_down=10, speed_limit_down_enabled=True))
call("unknown", lambda: raw({"method": "torrent-rename-path", "arguments": {"ids": [1, 2], "path": "a", "name": "b"}, "tag": 6}))
call("remove", lambda: client.remove_torrent([1], delete_data=True))
call("remove_rest", lambda: client.remove_torrent([2, 3]))
call("none", fields_of)
# These two ask servers on the internet.
call("port", lambda: "result" in raw({"method": "port-test"})[1])
call("blocklist", lambda: "result" in raw({"method": "blocklist-update"})[1])
call("close", lambda: raw({"method": "session-close", "tag": 7}))
print(json.dumps(results, indent=1))
