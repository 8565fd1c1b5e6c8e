// SPDX-License-Identifier: Apache-2.0
// The linker: several inputs to one image, which the calls that load modules take.
#include "runtime/module/link_state.h"
#include "runtime/shim/convert.h"
#include "runtime/shim/jit_options.h"

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Context;
using runtime::LinkInput;

namespace {

/// CUlinkState. The options of cuLinkCreate name log buffers that every later call writes.
struct Link {
    Link(unsigned count, const unsigned* options, void** values) : jit(count, options, values) {}
    void write_logs() {
        std::lock_guard lock(mutex);
        jit.finish(state.info_log(), state.error_log());
    }
    std::mutex mutex; ///< guards jit
    JitOptions jit;
    runtime::LinkState state;
};

CUresult create(unsigned count, const unsigned* options, void** values, CUlinkState* handle) {
    return context_entry([&](Context&) {
        if (!handle) return Status::invalid_value;
        auto link = std::make_shared<Link>(count, options, values);
        if (link->jit.status() != Status::success) return link->jit.status();
        runtime::HandleTable<Link>::get().add(link);
        *handle = to_handle<CUlinkState>(link);
        return Status::success;
    });
}

/// body(Link&) on a live link; its logs are written whatever comes of it.
template <class Body> CUresult link_entry(CUlinkState handle, Body&& body) {
    return entry([&] {
        auto link = find_handle<Link>(handle);
        if (!link) return Status::invalid_handle;
        const Status status = body(*link);
        link->write_logs();
        return status;
    });
}

/// The options of one input steer ptxas only; they are checked.
Status check_options(unsigned count, const unsigned* options, void** values) {
    return JitOptions(count, options, values).status();
}

CUresult add_data(CUlinkState handle, int kind, const void* data, std::size_t size, const char* name, unsigned count,
                  const unsigned* options, void** values) {
    return link_entry(handle, [&](Link& link) {
        if (Status status = check_options(count, options, values); status != Status::success) return status;
        return link.state.add(LinkInput{kind}, data, size, name ? name : "");
    });
}

CUresult add_file(CUlinkState handle, int kind, const char* path, unsigned count, const unsigned* options,
                  void** values) {
    return link_entry(handle, [&](Link& link) {
        if (!path) return Status::invalid_value;
        if (Status status = check_options(count, options, values); status != Status::success) return status;
        return link.state.add_file(LinkInput{kind}, path);
    });
}

} // namespace

PTM_API(cuLinkCreate, unsigned count, unsigned* options, void** values, CUlinkState* state) {
    return create(count, options, values, state);
}
PTM_API(cuLinkCreate_v2, unsigned count, unsigned* options, void** values, CUlinkState* state) {
    return create(count, options, values, state);
}
PTM_API(cuLinkAddData, CUlinkState state, int kind, void* data, std::size_t size, const char* name, unsigned count,
        unsigned* options, void** values) {
    return add_data(state, kind, data, size, name, count, options, values);
}
PTM_API(cuLinkAddData_v2, CUlinkState state, int kind, void* data, std::size_t size, const char* name, unsigned count,
        unsigned* options, void** values) {
    return add_data(state, kind, data, size, name, count, options, values);
}
PTM_API(cuLinkAddFile, CUlinkState state, int kind, const char* path, unsigned count, unsigned* options,
        void** values) {
    return add_file(state, kind, path, count, options, values);
}
PTM_API(cuLinkAddFile_v2, CUlinkState state, int kind, const char* path, unsigned count, unsigned* options,
        void** values) {
    return add_file(state, kind, path, count, options, values);
}
PTM_API(cuLinkComplete, CUlinkState state, void** image, std::size_t* size) {
    return link_entry(state, [&](Link& link) {
        if (!image) return Status::invalid_value;
        const void* bytes = nullptr;
        std::size_t count = 0;
        Status status = link.state.complete(bytes, count);
        if (status == Status::success) {
            *image = const_cast<void*>(bytes);
            store(size, count);
        }
        return status;
    });
}
PTM_API(cuLinkDestroy, CUlinkState state) {
    return entry(
        [&] { return runtime::HandleTable<Link>::get().remove(state) ? Status::success : Status::invalid_handle; });
}
