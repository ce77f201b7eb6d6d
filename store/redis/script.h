#ifndef HAWSER_STORE_REDIS_SCRIPT_H_
#define HAWSER_STORE_REDIS_SCRIPT_H_

namespace hawser::store::internal {

// Lua script for one operation of the store. Redis runs one script at a time.
// It first removes the keys whose leases have ended, whichever operation it
// does, and announces each change of a value in the channel of the key: "new"
// if the key was absent, "gone" if it is now, otherwise "other". A change that
// leaves the value as it was, such as most renewals of leases, is silent.
//
// Each reply is a list whose first element is the outcome:
//   "done" and the reply of the operation.
//   "refused" and the value that makes the operation invalid: not a number, or
//     too long.
//   "lost" the data was lost since this client connected.
//
//   KEYS[1]  hash of all keys of the job.
//   KEYS[2]  random id of this data, chosen by the first client.
//   KEYS[3]  the last change of this slot, "<sequence> <reply>".
//   KEYS[4]  sorted set of the keys that are leases, by the time in ms at which
//            they end, on Redis's clock.
//   ARGV[1]  the id known to the client; empty if none yet.
//   ARGV[2]  operation.
//   ARGV[3]  the sequence number of a change; empty for other operations.
//   ARGV[4]  the prefix of all channels.
//   ARGV[5]  key, followed by further arguments.
inline constexpr char kRedisScript[] = R"lua(
local operation = ARGV[2]
if operation == 'begin' then
  redis.call('SETNX', KEYS[2], ARGV[5])
  return {'done', redis.call('GET', KEYS[2])}
end
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return {'lost'} end

local data, leases, key = KEYS[1], KEYS[4], ARGV[5]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ended = redis.call('ZRANGEBYSCORE', leases, '-inf', now)
for i = 1, #ended do
  redis.call('ZREM', leases, ended[i])
  if redis.call('HDEL', data, ended[i]) == 1 then
    redis.call('PUBLISH', ARGV[4] .. ended[i], 'gone')
  end
end

if operation == 'get' then
  local value = redis.call('HGET', data, key)
  if value then return {'done', '1', value} end
  return {'done', '0'}
elseif operation == 'missing' then
  for i = 5, #ARGV do
    if redis.call('HEXISTS', data, ARGV[i]) == 0 then
      return {'done', tostring(i - 5)}
    end
  end
  return {'done', tostring(#ARGV - 4)}
elseif operation == 'look' then
  -- The time in ms until the first lease of the keys ends, and for each key
  -- whether it is present, and its value.
  local reply, first = {'done', ''}, nil
  for i = 5, #ARGV do
    local value = redis.call('HGET', data, ARGV[i])
    reply[#reply + 1] = value and '1' or '0'
    reply[#reply + 1] = value or ''
    local ends = tonumber(redis.call('ZSCORE', leases, ARGV[i]) or '')
    if ends and (not first or ends < first) then first = ends end
  end
  if first then reply[2] = string.format('%d', first - now) end
  return reply
elseif operation == 'count' then
  return {'done', tostring(redis.call('HLEN', data))}
end

-- Changes.
local last = redis.call('GET', KEYS[3])
if last then
  local made, answer = string.match(last, '^(%d+) (.*)$')
  if made == ARGV[3] then return {'done', answer, ''} end
  -- An attempt that comes after its change has ended: nobody hears the answer.
  if tonumber(made) > tonumber(ARGV[3]) then return {'done', '0', ''} end
end
local old = redis.call('HGET', data, key)
local answer, value
if operation == 'set' or operation == 'lease' then
  value = ARGV[6]
  redis.call('HSET', data, key, value)
  answer = '1'
elseif operation == 'add' then
  local sum = redis.pcall('HINCRBY', data, key, ARGV[6])
  if type(sum) == 'table' then return {'refused', old or ''} end
  -- Not `sum`, which is rounded to a double.
  answer = redis.call('HGET', data, key)
  value = answer
elseif operation == 'append' then
  value = (old or '') .. ARGV[6]
  if #value > tonumber(ARGV[7]) then return {'refused', old or ''} end
  redis.call('HSET', data, key, value)
  answer = tostring(#value)
elseif operation == 'compare' then
  if (old or '') ~= ARGV[6] then return {'done', '0', old or ''} end
  value = ARGV[7]
  redis.call('HSET', data, key, value)
  answer = '1'
elseif operation == 'delete' then
  if not old then return {'done', '0', ''} end
  redis.call('HDEL', data, key)
  answer = '1'
end
redis.call('SET', KEYS[3], ARGV[3] .. ' ' .. answer, 'EX', 1200)
if operation == 'lease' then
  redis.call('ZADD', leases, now + ARGV[7], key)
else
  redis.call('ZREM', leases, key)
end
if (old or nil) ~= value then
  local kind = (not old and 'new') or (not value and 'gone') or 'other'
  redis.call('PUBLISH', ARGV[4] .. key, kind)
end
return {'done', answer, ''}
)lua";

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_REDIS_SCRIPT_H_
