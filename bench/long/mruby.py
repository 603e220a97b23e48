"""A script for mruby: sessions, closures, words of a log, sorted tables, at a load that rises and falls."""

from __future__ import annotations

from long.running import Run

SCRIPT = """\
seed, steps = ARGV[0].to_i, ARGV[1].to_i
$state = seed * 7919 + 12345

def draw(most)
  $state = ($state * 1103515245 + 12345) & 0x7fffffff
  ($state >> 8) % most
end

def word(longest)
  text = ""
  (1 + draw(longest)).times { text << (97 + draw(26)).chr }
  text
end

sessions, queue, log = {}, [], []
# How many sessions there may be changes with the hour.
most = 100
steps.times do |step|
  if step % 4000 == 3999
    most = 40 + draw(120)
    sessions.keys.each { |id| sessions.delete(id) if id >= most }
  end
  kind = draw(100)
  if kind < 25
    sessions[draw(most)] = { "name" => word(20), "tags" => {}, "text" => word(3) * (1 + draw(60)) }
  elsif kind < 35
    sessions.delete(draw(most))
  elsif kind < 60
    session = sessions[draw(most)]
    if session
      session["tags"][word(4)] = [draw(9), step]
      session["tags"] = {} if draw(5) == 0
      session["text"] = (session["text"] + word(12))[-200..-1] || word(9)
    end
  elsif kind < 75
    # The consumer of the queue stands still until 60 wait, then takes the first 30.
    queue.push(Proc.new { step + seed })
    queue = queue[30..-1] if queue.size > 60
  elsif kind < 90
    "#{step}:#{word(8)}:#{draw(1000)}".split(":").each { |part| log[draw(300)] = part }
  else
    rows = (1..(2 + draw(40))).map { |row| { "row" => row, "value" => draw(10000) } }
    rows = rows.sort { |one, other| one["value"] <=> other["value"] }
    sessions[draw(most)] = { "name" => "s", "tags" => {}, "text" => rows[0]["value"].to_s }
  end
end
"""


def record(run: Run) -> None:
    """Record mruby's interpreter."""
    run.record("mruby", run.file("sessions.rb", SCRIPT), str(run.seed), str(run.requests))
