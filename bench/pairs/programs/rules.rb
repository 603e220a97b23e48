# A rule engine of a home: events come in, rules fire, a journal of bounded length is kept: ROOMS EVENTS.
rooms = ARGV[0].to_i
events = ARGV[1].to_i
seed = 11
draw = lambda do |most|
  seed = (seed * 1103515 + 12345) % 16777216
  seed / 256 % most
end

class Rule
  attr_reader :fired
  def initialize(room, limit)
    @room, @limit, @fired = room, limit, []
  end

  def see(event)
    return unless event[:room] == @room && event[:value] > @limit
    @fired << "#{event[:kind]} of #{@room} is #{event[:value]}"
    @fired.shift if @fired.size > 20
  end
end

rules = (0...rooms * 2).map { |n| Rule.new("room-#{n % rooms}", 60 + n % 30) }
journal = []
events.times do |n|
  event = { room: "room-#{draw.call(rooms)}", kind: %w[light heat door power][draw.call(4)], value: draw.call(100), at: n }
  rules.each { |rule| rule.see(event) }
  journal << event.map { |key, value| "#{key}=#{value}" }.join(" ")
  journal.shift if journal.size > 60
end
rules.each { |rule| puts rule.fired.join("; ") }
puts journal.size
