// SPDX-License-Identifier: Apache-2.0
// One key of POSIX thread-specific data: its destructor runs where a thread ends, and never in exit().
#include "runtime/base/per_thread.h"

#include <pthread.h>

namespace ptarmigan::runtime {
namespace {

struct CleanUp {
    void (*run)(void*);
    void* object;
    CleanUp* next;
};

/// Last in, first out. What is added meanwhile is a list of its own, for the next round of the C library.
void run_all(void* list) {
    for (auto* next = static_cast<CleanUp*>(list); next;) {
        CleanUp* const done = next;
        next = done->next;
        done->run(done->object);
        delete done;
    }
}

struct Key {
    pthread_key_t key{};
    bool made;
    Key() : made(pthread_key_create(&key, run_all) == 0) {}
};

} // namespace

void at_thread_end(void (*clean_up)(void*), void* object) {
    static const Key key;
    if (!key.made) return; // the program has taken all keys: its threads' objects stay
    auto* const entry = new CleanUp{clean_up, object, static_cast<CleanUp*>(pthread_getspecific(key.key))};
    if (pthread_setspecific(key.key, entry) != 0) delete entry;
}

} // namespace ptarmigan::runtime
