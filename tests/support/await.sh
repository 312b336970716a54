# await.sh - sourced.
#
#   await SECONDS COMMAND...     false when it has not come true by then

await() {
    await_ticks=$(($1 * 20))
    shift
    while [ $await_ticks -gt 0 ]; do
        "$@" && return 0
        await_ticks=$((await_ticks - 1))
        sleep 0.05
    done
    return 1
}
