-- A gateway that keeps the last readings of its sensors, raises alarms, and reports in JSON: SENSORS READINGS.
local sensors, readings = tonumber(arg[1]), tonumber(arg[2])
local state, seed = {}, 7

local function draw(most)
    seed = (seed * 1103515245 + 12345) % 2147483648
    return seed // 65536 % most
end

local function encode(value)
    if type(value) == "table" then
        local parts = {}
        if #value > 0 then
            for _, item in ipairs(value) do parts[#parts + 1] = encode(item) end
            return "[" .. table.concat(parts, ",") .. "]"
        end
        for key, item in pairs(value) do parts[#parts + 1] = string.format("%q:%s", key, encode(item)) end
        return "{" .. table.concat(parts, ",") .. "}"
    end
    return type(value) == "string" and string.format("%q", value) or tostring(value)
end

for number = 1, readings do
    local name = "sensor-" .. draw(sensors)
    local sensor = state[name] or { name = name, last = {}, alarms = {} }
    state[name] = sensor
    table.insert(sensor.last, { at = number, value = draw(1000) / 10 })
    if #sensor.last > 12 then table.remove(sensor.last, 1) end
    if draw(20) == 0 then sensor.alarms[#sensor.alarms + 1] = "alarm " .. number .. " of " .. name end
    if number % 50 == 0 then print(encode(sensor)) end
    if draw(200) == 0 then state[name] = nil end
end
