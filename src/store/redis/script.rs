//! The scripts that the server runs atomically, in the Lua of Redis 5 and later and of Valkey.
//!
//! A revision is a decimal number, followed for the state by a colon and a digest of its text: after a server has lost
//! data, two replicas may hold different texts with the same number. A text without a revision, or a revision without a
//! text, counts as nothing: both are written together, so the server has lost one of them.
//!
//! Used by `redis`.

/// The functions that every script begins with.
const COMMON: &str = "\
local function revision(text, at)
  local found = redis.call('GET', at)
  if not found or redis.call('EXISTS', text) == 0 then return '0' end
  return found
end
local function number(revision)
  return tonumber(string.match(revision, '^%d+'))
end
local function is(found, wanted)
  return found == wanted or string.match(found, '^%d+') == wanted
end
local function bounded(text, longest)
  if redis.call('STRLEN', text) > tonumber(longest) then return false end
  return redis.call('GET', text)
end
";

/// Keys: text, revision. Arguments: known revision, maximum length. Returns nothing if the revision is known, else the
/// revision and the text.
const READ: &str = "\
local found = revision(KEYS[1], KEYS[2])
if is(found, ARGV[1]) then return false end
return {found, bounded(KEYS[1], ARGV[2])}
";

/// Keys: text, revision, marks. Arguments: maximum length, expected revision, next revision, text, mark, number of
/// marks kept. Returns the outcome.
///
/// The mark identifies a commit, so that one whose reply was lost can be sent again: it is not made twice, and it is
/// found even if others have followed.
const COMMIT: &str = "\
local found = revision(KEYS[1], KEYS[2])
if is(found, ARGV[2]) then
  redis.call('MSET', KEYS[1], ARGV[4], KEYS[2], ARGV[3])
  redis.call('LPUSH', KEYS[3], ARGV[5])
  redis.call('LTRIM', KEYS[3], 0, ARGV[6] - 1)
  return {'done', ARGV[3], false}
end
if number(found) > number(ARGV[2]) then
  for _, mark in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
    if mark == ARGV[5] then return {'done', ARGV[3], false} end
  end
end
return {'conflict', found, bounded(KEYS[1], ARGV[1])}
";

/// Keys: text, revision. Arguments: the number below which to write, revision, text. Returns 1 if written.
const RESTORE: &str = "\
if number(revision(KEYS[1], KEYS[2])) >= tonumber(ARGV[1]) then return 0 end
redis.call('MSET', KEYS[1], ARGV[3], KEYS[2], ARGV[2])
return 1
";

/// Keys: archive, its revision, reports. Arguments: maximum length, own field, own record, maximum number of reports,
/// maximum bytes of them. Returns the archive and the reports of the others.
const EXCHANGE: &str = "\
redis.call('HSET', KEYS[3], ARGV[2], ARGV[3])
local fields = redis.call('HKEYS', KEYS[3])
table.sort(fields)
local reports, size = {}, 0
for _, field in ipairs(fields) do
  if field ~= ARGV[2] then
    size = size + redis.call('HSTRLEN', KEYS[3], field)
    if #reports >= tonumber(ARGV[4]) or size > tonumber(ARGV[5]) then break end
    reports[#reports + 1] = redis.call('HGET', KEYS[3], field)
  end
end
return {revision(KEYS[1], KEYS[2]), bounded(KEYS[1], ARGV[1]), reports}
";

/// Keys: archive, its revision, reports. Arguments: maximum length, expected revision, next revision, text, then the
/// field and the beginning of the record of each report. Returns the outcome.
const FOLD: &str = "\
local found = revision(KEYS[1], KEYS[2])
local same = is(found, ARGV[2])
for i = 5, #ARGV, 2 do
  local record = redis.call('HGET', KEYS[3], ARGV[i]) or ''
  same = same and string.sub(record, 1, #ARGV[i + 1]) == ARGV[i + 1]
end
if not same then return {'conflict', found, bounded(KEYS[1], ARGV[1])} end
redis.call('MSET', KEYS[1], ARGV[4], KEYS[2], ARGV[3])
for i = 5, #ARGV, 2 do redis.call('HDEL', KEYS[3], ARGV[i]) end
return {'done', ARGV[3], false}
";

/// A script.
#[derive(Debug, Clone, Copy)]
pub(super) enum Script {
    Read,
    Commit,
    Restore,
    Exchange,
    Fold,
}

impl Script {
    /// Creates a command that runs the script on `keys`; the caller appends its arguments.
    pub(super) fn on(self, keys: &[&str]) -> redis::Cmd {
        let body = match self {
            Script::Read => READ,
            Script::Commit => COMMIT,
            Script::Restore => RESTORE,
            Script::Exchange => EXCHANGE,
            Script::Fold => FOLD,
        };
        let mut command = redis::cmd("EVAL");
        command.arg(format!("{COMMON}{body}")).arg(keys.len());
        for key in keys {
            command.arg(*key);
        }
        command
    }
}
