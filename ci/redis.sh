# To be sourced: a Redis of our own, on a free port of this machine, under the name that starts no service.

redis=

# serve_redis FOLDER: sets `address`, and `redis`, the process; what it says is in FOLDER.
serve_redis() {
    local port=$((20000 + RANDOM % 20000))
    (exec -a redis-server redis-check-rdb --bind 127.0.0.1 --port $port --save "" --appendonly no --dir "$1" > "$1/redis" 2>&1) &
    redis=$!
    for _ in $(seq 50); do
        if [ "$(redis-cli -p $port ping 2>&1)" = PONG ]; then
            address=redis://127.0.0.1:$port
            return
        fi
        sleep 0.1
    done
    echo "no answer from redis-server: $(cat "$1/redis")" >&2
    return 1
}

# end_redis FOLDER: if there is one.
end_redis() {
    [ -z "$redis" ] || { kill "$redis" && wait "$redis"; } 2> "$1/log" || true
}
