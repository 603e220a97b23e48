# Reads a device's configuration and prints it as pages: FILE.
set devices {}
set file [open [lindex $argv 0]]
while {[gets $file line] >= 0} {
    if {[regexp {^device (\S+)} $line -> name]} {
        set device $name
        dict set devices $device {}
    } elseif {[regexp {^\s+(\S+)\s*=\s*(.*)$} $line -> key value]} {
        dict set devices $device $key [string trim $value]
    }
}
close $file
proc page {name settings} {
    set rows {}
    foreach key [lsort [dict keys $settings]] {
        lappend rows "<tr><td>$key</td><td>[string map {& &amp; < &lt;} [dict get $settings $key]]</td></tr>"
    }
    return "<h1>$name</h1><table>[join $rows \n]</table>"
}
foreach name [lsort [dict keys $devices]] {
    puts [page $name [dict get $devices $name]]
}
puts "[dict size $devices] devices"
