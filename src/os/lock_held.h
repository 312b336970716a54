/* lock_held.h - whether some process holds a lock on a file, without taking one: whoever tries, even for a moment, may stand in
 * the way of the one that the lock is for. */
#ifndef TG_OS_LOCK_HELD_H
#define TG_OS_LOCK_HELD_H

typedef enum tg_lock_held {
    TG_LOCK_FREE, /* of the processes of this machine */
    TG_LOCK_HELD,
    TG_LOCK_UNKNOWN /* no such file, or the system does not say */
} tg_lock_held;

/* flock() in any mode, by what Linux lists in `locks` ("/proc/locks"). */
tg_lock_held tg_lock_is_held(const char *path, const char *locks);

#endif
