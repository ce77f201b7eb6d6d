#ifndef HAWSER_STORE_REDIS_SCRIPT_H_
#define HAWSER_STORE_REDIS_SCRIPT_H_

namespace hawser::store::internal {

// Lua script for one operation of the store. Redis runs one script at a time.
// Each reply is a list whose first element is the outcome:
//   "done" and the reply of the operation.
//   "refused" and the value that makes the operation invalid: not a number, or
//     too long.
//   "lost" the data was lost since this client connected.
//
//   KEYS[1]  hash of all keys of the job.
//   KEYS[2]  random id of this data, chosen by the first client.
//   KEYS[3]  the last change of this slot, "<sequence> <reply>".
//   ARGV[1]  the id known to the client; empty if none yet.
//   ARGV[2]  operation.
//   ARGV[3]  the sequence number of a change; empty for other operations.
//   ARGV[4]  the prefix of the channel of a change.
//   ARGV[5]  key, followed by further arguments.
inline constexpr char kRedisScript[] = R"lua(
local operation = ARGV[2]
if operation == 'begin' then
  redis.call('SETNX', KEYS[2], ARGV[5])
  return {'done', redis.call('GET', KEYS[2])}
end
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return {'lost'} end

local data, key = KEYS[1], ARGV[5]
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
local answer
if operation == 'set' then
  redis.call('HSET', data, key, ARGV[6])
  answer = '1'
elseif operation == 'add' then
  local sum = redis.pcall('HINCRBY', data, key, ARGV[6])
  if type(sum) == 'table' then return {'refused', old or ''} end
  -- Not `sum`, which is rounded to a double.
  answer = redis.call('HGET', data, key)
elseif operation == 'append' then
  local value = (old or '') .. ARGV[6]
  if #value > tonumber(ARGV[7]) then return {'refused', old or ''} end
  redis.call('HSET', data, key, value)
  answer = tostring(#value)
elseif operation == 'compare' then
  if (old or '') ~= ARGV[6] then return {'done', '0', old or ''} end
  redis.call('HSET', data, key, ARGV[7])
  answer = '1'
elseif operation == 'delete' then
  if not old then return {'done', '0', ''} end
  redis.call('HDEL', data, key)
  answer = '1'
end
redis.call('SET', KEYS[3], ARGV[3] .. ' ' .. answer, 'EX', 1200)
if not old then redis.call('PUBLISH', ARGV[4] .. key, '') end
return {'done', answer, ''}
)lua";

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_REDIS_SCRIPT_H_
