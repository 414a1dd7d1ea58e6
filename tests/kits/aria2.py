"""Calls every operation of the kit with aria2p, and prints the results as JSON.

Numbers of downloads (GIDs) are replaced, because they differ between two servers.
"""

import base64
import http.server
import json
import sys
import tempfile
import threading
import urllib.parse

import aria2p

url = urllib.parse.urlsplit(sys.argv[1])
client = aria2p.Client(host=f"http://{url.hostname}", port=url.port, secret="secret")
results = {}
gids = []


def call(name, body):
    try:
        result = json.dumps(body())
    except aria2p.ClientException as error:
        result = json.dumps(f"error {error.code}: {error.message}")
    for number, gid in enumerate(gids):
        result = result.replace(gid, f"GID{number}")
    results[name] = json.loads(result)


class Slow(http.server.BaseHTTPRequestHandler):
    """A file that never arrives, so that its downloads last as long as the test."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "100000")
        self.end_headers()
        threading.Event().wait()

    def log_message(self, *_):
        pass


folder = tempfile.mkdtemp()
files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
threading.Thread(target=files.serve_forever, daemon=True).start()
source = f"http://127.0.0.1:{files.server_port}/file"
torrent = b"d4:infod6:lengthi4e4:name1:a12:piece lengthi16384e6:pieces20:" + b"x" * 20 + b"ee"
metalink = f"""<?xml version="1.0"?><metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="b"><url>{source}</url></file></metalink>"""


def add(body):
    gid = body()
    gids.extend([gid] if isinstance(gid, str) else gid)
    return len(gids)


paused = {"dir": folder + "/out", "pause": "true"}
call("version", lambda: client.get_version()["version"])
call("session", lambda: list(client.get_session_info()))
call("stats", lambda: sorted(client.get_global_stat()))
call("add", lambda: add(lambda: client.add_uri([source], paused)))
call("add_at", lambda: add(lambda: client.add_uri([source], paused, 0)))
call("torrent", lambda: add(lambda: client.call("aria2.addTorrent", [base64.b64encode(torrent).decode(), [], paused])))
call("torrent_bad", lambda: client.call("aria2.addTorrent", [base64.b64encode(b"x").decode()]))
call("metalink", lambda: add(lambda: client.call("aria2.addMetalink", [base64.b64encode(metalink.encode()).decode(), paused])))
gid = gids[0]
call("status", lambda: client.tell_status(gid, ["status", "totalLength"]))
call("waiting", lambda: sorted(download["status"] for download in client.tell_waiting(0, 10)))
call("waiting_keys", lambda: client.tell_waiting(0, 1, ["gid"]))
call("uris", lambda: sorted({uri["status"] for uri in client.get_uris(gid)}))
call("files", lambda: len(client.get_files(gid)))
call("peers", lambda: client.get_peers(gids[2]))
call("servers", lambda: client.get_servers(gid))
call("option", lambda: client.get_option(gid)["split"])
call("change", lambda: client.change_option(gid, {"max-download-limit": "50K"}))
call("changed", lambda: client.get_option(gid)["max-download-limit"])
call("position", lambda: client.change_position(gid, 0, "POS_SET"))
call("change_uri", lambda: client.change_uri(gid, 1, [], [source + "?again"]))
call("pause_all", client.pause_all)
call("force_pause_all", client.force_pause_all)
call("unpause", lambda: client.unpause(gid))
call("active", lambda: isinstance(client.tell_active(["gid"]), list))
call("pause", lambda: client.pause(gid))
call("unpause_again", lambda: client.unpause(gid))
call("force_pause", lambda: client.force_pause(gid))
call("unpause_all", client.unpause_all)
call("missing", lambda: client.tell_status("0123456789abcdef"))
call("remove", lambda: client.remove(gids[1]))
call("force_remove", lambda: client.force_remove(gids[3]))
call("stopped", lambda: isinstance(client.tell_stopped(0, 10, ["gid"]), list))
call("remove_result", lambda: client.remove_download_result("0123456789abcdef"))
call("purge", client.purge_download_result)
call("global", lambda: client.get_global_option()["max-concurrent-downloads"])
call("change_global", lambda: client.change_global_option({"max-concurrent-downloads": "7"}))
call("global_changed", lambda: client.get_global_option()["max-concurrent-downloads"])
call("save", client.save_session)
client.secret = "wrong"
call("wrong_secret", client.get_version)
client.secret = "secret"
call("shutdown", client.shutdown)
call("force_shutdown", client.force_shutdown)
print(json.dumps(results, indent=1))
