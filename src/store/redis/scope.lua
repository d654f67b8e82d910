-- The budget of a scope and what is done with it: what `policy::Budget::apply` says, in Redis.
--
-- KEYS: the scope's hash, and where a damaged one is set aside.
-- ARGV: database, operation, time to live (ms), whether there is a limiter, capacity and
-- refill (billionths of a token a second) of the run's quota or nothing, and then
--   take
--   book   throttled, entry, tokens, delay (whole seconds, nanoseconds), longest wait (us)
--   set    tokens
-- or only a database and
--   show
--   reset
--
-- Lua has doubles only. The quota is exact all the same: its level is kept as whole tokens,
-- billionths, and billionths of those, and no number on the way reaches 2^53.

local BILLION = 1e9
local MOST_TOKENS = 4294967295
local MOST_REFILL = 1e15
-- In microseconds, 142 years: the sum of two is still exact.
local MOST_TIME = 4503599627370496
local MOST_REAL = 1e18

local database, operation, ttl = ARGV[1], ARGV[2], ARGV[3]

-- A script is not undone where a user may do one thing and not the next.
for _, name in ipairs(ttl and redis.acl_check_cmd and {'HSET', 'PEXPIRE'} or {}) do
    local known, allowed = pcall(redis.acl_check_cmd, name, KEYS[1], '1', '1')
    if not (known and allowed) then
        return redis.error_reply((known and 'NOPERM ' or 'ERR unknown command ') .. name)
    end
end
local has_limiter = ARGV[4] == '1'
local capacity, refill = tonumber(ARGV[5]), tonumber(ARGV[6])

if database ~= '0' then
    redis.call('SELECT', database)
end
local stamp = redis.call('TIME')
local time = stamp[1] * 1e6 + stamp[2]

-- How often a unit goes into a number, and the rest: exact for whole ones below 2^53.
local function parts(number, unit)
    local rest = number % unit
    return (number - rest) / unit, rest
end

-- As Duration::as_secs_f64 has it.
local function seconds(us)
    local whole, rest = parts(us, 1e6)
    return whole + rest * 1000 / 1e9
end

-- Lua reads 0x10, nan and inf as numbers too.
local function whole_number(text, most)
    local number = text and string.find(text, '^%d+$') and tonumber(text)
    return number and number <= most and number or nil
end

local function real_number(text, most)
    local number = text and string.find(text, '^%d[%d.e+-]*$') and tonumber(text)
    return number and number <= most and number or nil
end

local QUOTA = {'capacity', 'refill', 'tokens', 'billionths', 'remainder'}
local QUOTA_MOST = {MOST_TOKENS, MOST_REFILL, MOST_TOKENS, BILLION - 1, BILLION - 1}
local LIMITER = {'fill_rate', 'max_capacity', 'capacity', 'refilled', 'measured', 'slot', 'count', 'last_max',
    'last_throttle', 'window'}

-- Reads a group of fields, all of which are there or none. Returns it, or the name of a bad one.
local function group(found, prefix, names, read)
    local values, none = {}, true
    for i, name in ipairs(names) do
        none = none and not found[prefix .. name]
    end
    if none then
        return nil
    end
    for i, name in ipairs(names) do
        values[name] = read(found[prefix .. name], i)
        if not values[name] then
            return nil, prefix .. name
        end
    end
    return values
end

-- The state that is kept; nothing where there is none. The second is what is wrong with it.
local function load()
    local names = {'schema', 'clock_us', 'updated_us', 'ttl_ms', 'fresh', 'limiter_enabled'}
    for _, name in ipairs(QUOTA) do
        names[#names + 1] = name
    end
    for _, name in ipairs(LIMITER) do
        names[#names + 1] = 'limiter_' .. name
    end
    local kind = redis.call('TYPE', KEYS[1]).ok
    if kind == 'none' then
        return nil
    end
    if kind ~= 'hash' then
        return nil, 'type'
    end
    local values = redis.call('HMGET', KEYS[1], unpack(names))
    local found = {}
    for i, name in ipairs(names) do
        found[name] = values[i]
    end
    if found.schema ~= '1' then
        return nil, 'schema'
    end
    local state = {clock = whole_number(found.clock_us, MOST_TIME), ttl = whole_number(found.ttl_ms, MOST_TIME),
        fresh = found.fresh == '1'}
    if not state.clock then
        return nil, 'clock_us'
    end
    local updated = found.updated_us and string.find(found.updated_us, '^-?%d+$') and tonumber(found.updated_us)
    if not updated then
        return nil, 'updated_us'
    end
    -- One of the future, or of long ago, is of a clock that was wrong and does no harm.
    state.updated = math.min(math.max(updated, 0), MOST_TIME)
    local wrong
    state.quota, wrong = group(found, '', QUOTA, function(text, i) return whole_number(text, QUOTA_MOST[i]) end)
    if wrong then
        return nil, wrong
    end
    local limiter
    limiter, wrong = group(found, 'limiter_', LIMITER, function(text) return real_number(text, MOST_REAL) end)
    if wrong then
        return nil, wrong
    end
    if limiter then
        local now = seconds(state.clock)
        for _, name in ipairs({'refilled', 'slot', 'last_throttle'}) do
            if limiter[name] > now then
                return nil, 'limiter_' .. name
            end
        end
        -- With less of either, a token would never come.
        if limiter.fill_rate < 0.5 then
            return nil, 'limiter_fill_rate'
        end
        if limiter.max_capacity < 1 then
            return nil, 'limiter_max_capacity'
        end
        if found.limiter_enabled ~= '0' and found.limiter_enabled ~= '1' then
            return nil, 'limiter_enabled'
        end
        limiter.enabled = found.limiter_enabled == '1'
        state.limiter = limiter
    elseif found.limiter_enabled then
        return nil, 'limiter_enabled'
    end
    return state
end

-- Never more than the capacity. What a refill left over is kept or not as `RetryQuota` does.
local function restore(quota)
    if quota.tokens >= quota.capacity then
        quota.tokens, quota.billionths, quota.remainder = quota.capacity, 0, 0
    end
end

-- The tokens that came in: time x refill in parts, of seconds and microseconds by whole tokens
-- and billionths. The greatest products are 2^52/1e6 x 1e6, 45036 x 1e9, 1e5 x 1e9, 1e6 x 1e9.
local function refill_quota(quota, us)
    local secs, micros = parts(us, 1e6)
    local high, low = parts(secs, 1e5)
    local rate, fraction = parts(quota.refill, BILLION)
    local tokens_of_high, rest_of_high = parts(high * fraction, 1e4)
    local tokens_of_low, rest_of_low = parts(low * fraction, BILLION)
    local tokens_of_rate, rest_of_rate = parts(micros * rate, 1e6)
    local of_fraction, rest_of_fraction = parts(micros * fraction, 1e6)
    local carry, remainder = parts(quota.remainder + rest_of_fraction * 1000, BILLION)
    local tokens, billionths = parts(
        quota.billionths + rest_of_high * 1e5 + rest_of_low + rest_of_rate * 1000 + of_fraction + carry, BILLION)
    quota.tokens = quota.tokens + secs * rate + tokens_of_high + tokens_of_low + tokens_of_rate + tokens
    quota.billionths, quota.remainder = billionths, remainder
    restore(quota)
end

local function new_limiter()
    return {enabled = false, fill_rate = 0, max_capacity = 0, capacity = 0, measured = 0, slot = 0, count = 0,
        last_max = 0, last_throttle = 0, window = 0}
end

local function refilled(limiter, now)
    if not limiter.refilled then
        return limiter.capacity
    end
    local gained = math.max(now - limiter.refilled, 0) * limiter.fill_rate
    return math.min(limiter.capacity + gained, limiter.max_capacity)
end

local function missing(limiter, level)
    local wait = (1 - level) / limiter.fill_rate
    return wait >= 1e-9 and wait or 0
end

local function take(limiter, now)
    if not limiter.enabled then
        return 0
    end
    limiter.capacity = refilled(limiter, now)
    limiter.refilled = now
    local wait = missing(limiter, limiter.capacity)
    if wait == 0 then
        limiter.capacity = math.max(limiter.capacity - 1, 0)
    end
    return wait
end

local function update(limiter, now, throttled)
    limiter.count = limiter.count + 1
    local slot = math.floor(now * 2) / 2
    if slot > limiter.slot then
        local rate = limiter.count / (slot - limiter.slot)
        limiter.measured = rate * 0.8 + limiter.measured * (1 - 0.8)
        limiter.count, limiter.slot = 0, slot
    end
    local rate
    if throttled then
        local used = limiter.measured
        if limiter.enabled then
            used = math.min(used, limiter.fill_rate)
        end
        limiter.last_max = used
        limiter.window = (used * (1 - 0.7) / 0.4) ^ (1 / 3)
        limiter.last_throttle = now
        limiter.enabled = true
        rate = used * 0.7
    else
        local since = now - limiter.last_throttle - limiter.window
        rate = 0.4 * (since * since * since) + limiter.last_max
    end
    rate = math.min(rate, 2 * limiter.measured)
    limiter.capacity = refilled(limiter, now)
    limiter.refilled = now
    limiter.fill_rate = math.max(rate, 0.5)
    limiter.max_capacity = math.max(rate, 1)
    limiter.capacity = math.min(limiter.capacity, limiter.max_capacity)
end

-- Whole microseconds, rounded up so that the token is there when the wait is over.
local function micros_up(wait)
    return math.ceil(math.floor(wait * 1e9 + 0.5) / 1000)
end

local function written(number)
    return string.format('%.17g', number)
end

local state, wrong = load()
local is_new = not state
if is_new then
    state = {clock = 0, updated = time}
    if wrong and operation ~= 'show' then
        redis.call('RENAME', KEYS[1], KEYS[2])
        redis.call('PEXPIRE', KEYS[2], 604800000)
    end
end
local elapsed = math.min(math.max(time - state.updated, 0), MOST_TIME)
local clock = math.min(state.clock + elapsed, MOST_TIME)
if state.quota then
    refill_quota(state.quota, clock - state.clock)
end
state.clock = clock

local function save()
    local fields = {'schema', '1', 'clock_us', written(state.clock), 'updated_us', written(time), 'ttl_ms', ttl,
        'fresh', state.fresh and '1' or '0'}
    local function add(name, value)
        fields[#fields + 1] = name
        fields[#fields + 1] = value
    end
    for _, name in ipairs(state.quota and QUOTA or {}) do
        add(name, written(state.quota[name]))
    end
    -- One that has seen nothing needs no place.
    if state.limiter and state.limiter.refilled then
        add('limiter_enabled', state.limiter.enabled and '1' or '0')
        for _, name in ipairs(LIMITER) do
            add('limiter_' .. name, written(state.limiter[name]))
        end
    end
    redis.call('HSET', KEYS[1], unpack(fields))
    redis.call('PEXPIRE', KEYS[1], ttl)
end

-- Whether there is one, what is wrong, when it was used, and its numbers.
local function shown()
    local answer = {is_new and 0 or 1, wrong or '', written(state.updated), written(state.clock)}
    for _, name in ipairs(QUOTA) do
        answer[#answer + 1] = state.quota and written(state.quota[name]) or ''
    end
    answer[#answer + 1] = state.limiter and state.limiter.enabled and '1' or '0'
    for _, name in ipairs(LIMITER) do
        answer[#answer + 1] = state.limiter and written(state.limiter[name]) or ''
    end
    return answer
end

if operation == 'show' then
    return shown()
end

if operation == 'set' then
    state.quota = state.quota or {capacity = capacity, refill = refill}
    local quota = state.quota
    quota.tokens, quota.billionths, quota.remainder = math.min(tonumber(ARGV[7]), quota.capacity), 0, 0
    state.updated, is_new = time, false
    -- How long it may lie unused is for its runs to say.
    ttl = state.ttl and state.ttl > 0 and written(state.ttl) or ttl
    state.fresh = false
    save()
    return shown()
end

-- Full by the numbers that it had, until the next run gives its own.
if operation == 'reset' then
    if not is_new then
        local quota = state.quota
        if quota then
            quota.tokens, quota.billionths, quota.remainder = quota.capacity, 0, 0
        end
        state.limiter, state.fresh = nil, true
        ttl = state.ttl and state.ttl > 0 and written(state.ttl) or '3600000'
        redis.call('DEL', KEYS[1])
        save()
    end
    return {(is_new and not wrong) and 0 or 1, wrong or ''}
end

if state.fresh then
    state.quota, state.fresh = nil, false
end

-- The numbers of the run's quota take the place of what was there; no token comes in by that.
local quota
if capacity then
    quota = state.quota or {tokens = capacity, billionths = 0, remainder = 0}
    state.quota = quota
    quota.capacity, quota.refill = capacity, refill
    restore(quota)
end
local limiter
if has_limiter then
    limiter = state.limiter or new_limiter()
    state.limiter = limiter
end
local now = seconds(clock)
local GRANTED, REFUSED, TOO_LATE = 0, 1, 2

local grant, wait = GRANTED, 0
if operation == 'take' then
    if limiter then
        wait = micros_up(take(limiter, now))
    end
else
    if limiter then
        update(limiter, now, ARGV[7] == '1')
    end
    local entry, tokens = ARGV[8], tonumber(ARGV[9])
    if entry == 'success' and quota then
        quota.tokens = quota.tokens + tokens
        if quota.tokens >= quota.capacity then
            quota.tokens, quota.billionths = quota.capacity, 0
        end
    elseif entry == 'retry' then
        local delay_secs, delay_nanos, longest = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
        if delay_secs and limiter and limiter.enabled then
            local secs, micros = parts(clock, 1e6)
            local carry, nanos = parts(micros * 1000 + delay_nanos, BILLION)
            wait = micros_up(missing(limiter, refilled(limiter, secs + delay_secs + carry + nanos / 1e9)))
        end
        if quota and quota.tokens < tokens then
            grant = REFUSED
        elseif not delay_secs or (longest and wait > longest) then
            grant = TOO_LATE
        elseif quota then
            quota.tokens = quota.tokens - tokens
        end
    end
end
save()
return {grant, wait, quota and quota.tokens or -1, clock, wrong or ''}
