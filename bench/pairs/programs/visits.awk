# What a web server's log says: bytes and status codes by path and by visitor, journeys of each visitor.
{
    split($4, clock, ":")
    path = $7
    sub(/\?.*/, "", path)
    bytes[path] += $10
    visits[$1, path]++
    codes[$9]++
    if (last[$1] && clock[2] * 60 + clock[3] - last[$1] > 5) journeys[$1] = journeys[$1] " " trail[$1]
    trail[$1] = substr(trail[$1] ">" path, 1, 400)
    last[$1] = clock[2] * 60 + clock[3]
}
END {
    for (path in bytes) print path, bytes[path] | "sort"
    for (pair in visits) { split(pair, parts, SUBSEP); paths[parts[1]]++ }
    for (visitor in paths) print visitor, paths[visitor], length(journeys[visitor])
    for (code in codes) print code, codes[code]
}
