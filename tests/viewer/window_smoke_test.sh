#!/usr/bin/env bash
# Tests the viewer in a real window (GLFW, GLX) on a virtual display, with a real mouse and keys of the X server:
# a click and a key select a panel, the wheel zooms the timeline, panes are split, focused and resized, menus open by
# keys, dropped files open, views, links and sessions lead back to their places, everything is restored when the program
# starts again, and nothing is drawn while nothing happens.
#
#   tests/viewer/window_smoke_test.sh PATH/TO/shardscope-view PATH/TO/drop_files
#
# Exit status 77 (skipped) if Xvfb or xdotool is missing. The state that the program saves shows what it
# did.
set -euo pipefail

view=$1 drop=$2
for tool in Xvfb xdotool; do
    command -v "$tool" >/dev/null || { echo "skipped: $tool is missing (scripts/packages.sh test)"; exit 77; }
done

folder=$(mktemp -d)
pids=()
finish() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    rm -rf "$folder"
}
trap finish EXIT
export XDG_STATE_HOME=$folder/state LIBGL_ALWAYS_SOFTWARE=1
state=$XDG_STATE_HOME/shardscope/viewer.json
fail() {
    echo "FAILED: $*" >&2
    [[ -f $folder/log ]] && cat "$folder/log" >&2
    [[ -f $state ]] && cat "$state" >&2
    exit 1
}

# A trace of two kernels and a copy, as Kineto writes it.
cat >"$folder/run.json" <<'JSON'
{"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [
 {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1000, "dur": 400, "args": {"device": 0, "stream": 7, "correlation": 1}},
 {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1600, "dur": 300, "args": {"device": 0, "stream": 7, "correlation": 2}},
 {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 8, "ts": 1100, "dur": 100, "args": {"device": 0, "stream": 8, "correlation": 3, "bytes": 4096}}
]}
JSON

# The first free display from 40 on, so that tests may run side by side. Not one of the first ten: MPI programs connect to
# those while they look for GPUs (hwloc), and end with them.
exec {number}<> <(:)
display=
for free in {40..60}; do
    Xvfb ":$free" -displayfd "$number" -screen 0 1280x800x24 -nolisten tcp -noreset >"$folder/xvfb" 2>&1 &
    server=$!
    # The server writes its number when it is ready. A slow one writes it in pieces, so that only its end counts.
    until read -r -t 0.2 <&"$number"; do kill -0 "$server" 2>/dev/null || continue 2; done
    display=$free
    break
done
[[ -n $display ]] || { cat "$folder/xvfb" >&2; fail "Xvfb did not start"; }
pids+=("$server")
export DISPLAY=:$display

start() { start_sized "$@" --size 1200x760; }
start_sized() {
    "$view" "$@" >"$folder/log" 2>&1 &
    program=$!
    pids+=("$program")
    for _ in $(seq 150); do
        kill -0 "$program" 2>/dev/null || fail "the program ended"
        window=$(xdotool search --name '^([^-]* - )?Shardscope$' 2>/dev/null | head -n 1) && [[ -n $window ]] && break
        sleep 0.2
    done
    [[ -n ${window:-} ]] || fail "no window came up"
    xdotool mousemove 700 400
    settle
}
jiffies() { awk '{print $14 + $15}' "/proc/$program/stat"; }
# True if every thread of the program and of the X server sleeps. On a busy machine one that waits for a core does not,
# although it uses no processor time.
asleep() {
    local states
    states=$(cat /proc/{"$program","$server"}/task/*/stat 2>/dev/null | sed 's/.*) \(.\).*/\1/')
    [[ $states != *[RD]* ]]
}
# Waits until both have slept for half a second, but for a moment.
settle() {
    local before still=0
    before=$(jiffies)
    for _ in $(seq 1200); do
        sleep 0.05
        if asleep && (($(jiffies) - before <= 2)); then
            ((still += 1))
        else
            still=0
            before=$(jiffies)
        fi
        ((still < 10)) || return 0
    done
    fail "the program does not come to rest"
}
# An idle viewer uses at most 0.05 s of processor time within two seconds; drawing would use all of it. One of five
# measurements may be disturbed by a frame that was still due.
idle() {
    local ticks before used
    ticks=$(getconf CLK_TCK)
    for _ in 1 2 3 4 5; do
        before=$(jiffies)
        sleep 2
        used=$(($(jiffies) - before))
        ((20 * used > ticks)) || return 0
    done
    fail "an idle viewer used $used of $((2 * ticks)) ticks"
}
key() { xdotool key "$1"; settle; }
# The first window whose title matches, as soon as there is one; nothing: there is none within ten seconds.
window_of() {
    local found=""
    for _ in $(seq 50); do
        found=$(xdotool search --name "$1" 2>/dev/null || true)
        [[ -z $found ]] || break
        sleep 0.2
    done
    head -n 1 <<<"$found"
}
quit() {
    xdotool key ctrl+q
    for turn in $(seq 300); do
        kill -0 "$program" 2>/dev/null || { wait "$program" || fail "the program failed"; return 0; }
        sleep 0.1
        # On a busy machine the window may not have had the keyboard yet.
        ((turn % 50 != 0)) || xdotool key ctrl+q
    done
    fail "Ctrl+Q did not end the program"
}
says() { grep -q "$1" "$state" || fail "the state does not hold $1"; }
visible() { tr -d ' \n' <"$state" | sed -n 's/.*"visible":\[\([-0-9,]*\)\].*/\1/p'; }

start "$folder/run.json" --panel runs
key 5
quit
says '"panel": "memory"'

# Everything is restored, including the open file. The mouse selects the timeline: the sidebar's third icon.
start
says 'run.json'
[[ -n $(window_of '^run.json - Shardscope$') ]] || fail "the title does not name the trace"
xdotool mousemove --window "$window" 20 97
settle
xdotool click 1
settle
quit
says '"panel": "timeline"'
whole=$(visible)

start
xdotool mousemove --window "$window" 800 500
settle
xdotool click 4 click 4 click 4
settle
key ctrl+equal
idle
quit
says '"zoom": 125'
[[ $(visible) != "$whole" ]] || fail "the wheel did not zoom"

# The window has the size that it had; a file that is dropped on it opens; the third menu's first entry, chosen by keys,
# is the next panel; while a menu is open, other keys do nothing, and Escape closes it.
start_sized
[[ $(xdotool getwindowgeometry "$window") == *1200x760* ]] || fail "the window's size is not restored"
cp "$folder/run.json" "$folder/two files.json"
"$drop" "$window" "$folder/two%20files.json" || fail "the drop was not taken"
settle
key F10
key Down
key Right
key Right
key Return
key F10
key 5
key Escape
key ctrl+Page_Down
quit
says 'two files.json'
says '"panel": "modules"'

# Split view: keys divide the window and go from pane to pane, a click moves the focus, the bar is dragged, all is
# restored.
start --panel timeline
key F7
key shift+F7
quit
says '"panes": "timeline | (memory / summary)"'
says '"panel": "summary"'
start
key F6
key F6
quit
says '"panel": "memory"'
start --scale 100
xdotool mousemove --window "$window" 300 500
settle
xdotool click 1
settle
bar=702 # the middle of a window 1200 pixels wide without its sidebar
xdotool mousemove --window "$window" "$bar" 400
settle
# The press counts where it happened, though the mouse is elsewhere before the next frame.
xdotool mousedown 1 mousemove --window "$window" $((bar + 10)) 400
settle
for x in 20 40 60 80 100 120; do
    xdotool mousemove --window "$window" $((bar + x)) 400
    settle
done
xdotool mouseup 1
settle
quit
says '"panel": "timeline"'
says '"panes": "timeline |6[0-9] (memory / summary)"'
start
key F8
key F8
quit
says '"panes": "summary"'

# A second window: it opens with the pane that had the keyboard, takes keys and the mouse itself, and comes back at the
# next start; its own key closes it. Without a window manager, the test moves the keyboard.
start --panel timeline
key F7
key ctrl+n
second=$(window_of '^Memory - .*Shardscope$')
[[ -n $second ]] || fail "no second window came up"
focus() {
    xdotool windowfocus "$1"
    settle
}
focus "$second"
key F7
idle
quit
says '"panes": "timeline"'
says '"second": "memory | summary"'
start
second=$(window_of '^[EM][A-Za-z ]* - .* - Shardscope$')
[[ -n $second ]] || fail "the second window did not come back"
focus "$second"
key F8
focus "$window"
key 3
quit
says '"panel": "modules"'
start
second=$(window_of '^[EM][A-Za-z ]* - .* - Shardscope$')
focus "$second"
key ctrl+shift+w
[[ -z $(xdotool search --name '^[EM][A-Za-z ]* - .* - Shardscope$' 2>/dev/null || true) ]] || fail "the second window did not close"
quit
says '"panel": "modules"'

# Views and links by keys: the memory panel is saved as view 2; a link to the timeline goes through the clipboard; a
# session is saved and dropped on another window.
start "$folder/run.json" --panel memory
key ctrl+shift+2
key 2
key ctrl+shift+l
key 1
key ctrl+2
quit
says '"panel": "memory"'
grep -q '"panel": "memory"' "$folder/run.json.marks.json" || fail "the view is not kept beside the trace"
start "$folder/run.json" --panel timeline
key ctrl+shift+l
key 1
key ctrl+shift+v
key ctrl+shift+s
key ctrl+a
xdotool type --delay 40 "$folder/saved"
settle
key Return
quit
says '"panel": "timeline"'
grep -q '"path": "run.json"' "$folder/saved.shardscope-session" || fail "the session is not saved"
start "$folder/two files.json" --panel runs
"$drop" "$window" "$folder/saved.shardscope-session" || fail "the drop was not taken"
settle
quit
says '"panel": "timeline"'
grep -q '"path": ".*two files.json"' "$state" && fail "the dropped session did not replace the trace"

# A display without OpenGL 3.3.
if MESA_GL_VERSION_OVERRIDE=2.1 "$view" "$folder/run.json" --no-state >"$folder/log" 2>&1; then
    fail "a window with OpenGL 2.1"
fi
grep -q 'the display offers no OpenGL 3.3' "$folder/log" || fail "the reason is not said"

# A damaged state is reported and ignored.
echo '{"zoom": "large"' >"$state"
start "$folder/run.json"
grep -q 'damaged and is ignored' "$folder/log" || fail "the damaged state is not reported"
quit
echo "the window works"
