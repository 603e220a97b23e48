"""A script for Lua: sessions, closures, words of a log, sorted tables, at a load that rises and falls."""

from __future__ import annotations

from long.running import Run

SCRIPT = """\
local seed, steps = tonumber(arg[1]), tonumber(arg[2])
math.randomseed(seed)
local random = math.random
local sessions, log, queue = {}, {}, {}

local function word(longest)
  local letters = {}
  for i = 1, random(1, longest) do letters[i] = string.char(random(97, 122)) end
  return table.concat(letters)
end

-- How many sessions there may be changes with the hour; at a burst all come at once.
local most = 50
for step = 1, steps do
  if step % 5000 == 0 then
    most = random(20, 80)
    for id = most + 1, 80 do sessions[id] = nil end
  end
  local kind = random()
  if kind < .25 then
    sessions[random(most)] = {name = word(20), tags = {}, at = step, text = string.rep(word(3), random(1, 60))}
  elseif kind < .35 then
    sessions[random(most)] = nil
  elseif kind < .6 then
    local session = sessions[random(most)]
    if session then
      session.tags[word(4)] = {random(), step}
      if random() < .2 then session.tags = {} end
      session.text = (session.text .. word(12)):sub(-300)
    end
  elseif kind < .75 then
    -- The consumer of the queue stands still until 60 wait, then takes the first 30.
    queue[#queue + 1] = function() return step + seed end
    if #queue > 60 then
      local rest = {}
      for i = 31, #queue do rest[#rest + 1] = queue[i] end
      queue = rest
    end
  elseif kind < .9 then
    local line = string.format("%d:%s:%g", step, word(8), random())
    for part in line:gmatch("[^:]+") do log[random(80)] = part end
  else
    local rows = {}
    for i = 1, random(2, 40) do rows[i] = {i = i, value = random()} end
    table.sort(rows, function(a, b) return a.value < b.value end)
    sessions[random(most)] = {name = "s", tags = {}, at = step, text = tostring(rows[1].value)}
  end
end
"""


def record(run: Run) -> None:
    """Record Lua's interpreter."""
    run.record("lua5.4", run.file("sessions.lua", SCRIPT), str(run.seed), str(run.requests))
