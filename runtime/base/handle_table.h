// SPDX-License-Identifier: Apache-2.0
// Live objects that programs hold handles of. A handle is the object's address; looking it up keeps
// the object alive while it is used, so a stale or invented handle gives a null pointer and never a
// crash.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

namespace ptarmigan::runtime {

/// The live objects of type T in this process. Thread-safe; its lock is a leaf (nothing is called
/// under it).
template <class T> class HandleTable {
public:
    static HandleTable& get() {
        static auto* table = new HandleTable; // never destroyed: programs call in from their exit handlers
        return *table;
    }
    void add(std::shared_ptr<T> object) {
        std::unique_lock lock(mutex_);
        const void* key = object.get();
        objects_.emplace(key, std::move(object));
    }
    /// The object, or null if `handle` is none of T's handles.
    std::shared_ptr<T> find(const void* handle) const {
        std::shared_lock lock(mutex_);
        auto found = objects_.find(handle);
        return found == objects_.end() ? nullptr : found->second;
    }
    std::vector<std::shared_ptr<T>> all() const {
        std::vector<std::shared_ptr<T>> objects;
        std::shared_lock lock(mutex_);
        for (const auto& [key, object] : objects_) objects.push_back(object);
        return objects;
    }
    /// Takes the object out; null if it was not there.
    std::shared_ptr<T> remove(const void* handle) {
        std::unique_lock lock(mutex_);
        auto found = objects_.find(handle);
        if (found == objects_.end()) return nullptr;
        std::shared_ptr<T> object = std::move(found->second);
        objects_.erase(found);
        return object;
    }
    /// Takes out every object that `belongs` accepts.
    template <class Predicate> std::vector<std::shared_ptr<T>> remove_if(Predicate belongs) {
        std::vector<std::shared_ptr<T>> removed;
        std::unique_lock lock(mutex_);
        for (auto entry = objects_.begin(); entry != objects_.end();) {
            if (belongs(*entry->second)) {
                removed.push_back(std::move(entry->second));
                entry = objects_.erase(entry);
            } else {
                ++entry;
            }
        }
        return removed;
    }

private:
    mutable std::shared_mutex mutex_;
    std::unordered_map<const void*, std::shared_ptr<T>> objects_;
};

} // namespace ptarmigan::runtime
