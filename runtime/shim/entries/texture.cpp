// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects. What an object was made from is kept beside it, for the queries.
#include "runtime/shim/convert.h"
#include "runtime/shim/texture_types.h"
#include "runtime/texture/object_table.h"
#include "runtime/texture/texture_objects.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Context;
using runtime::TextureObject;
using runtime::TextureTable;

namespace {

/// As the program gave them.
struct Descriptions {
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC sampler;
    CUDA_RESOURCE_VIEW_DESC view;
    const Context* context; ///< others may not ask, but destroy the object
};

class DescriptionTable {
public:
    static DescriptionTable& get() {
        static auto* table = new DescriptionTable; // never destroyed: programs call in from their exit handlers
        return *table;
    }
    void add(std::uint64_t handle, const Descriptions& descriptions) {
        std::lock_guard lock(mutex_);
        entries_[handle] = descriptions;
    }
    void remove(std::uint64_t handle) {
        std::lock_guard lock(mutex_);
        entries_.erase(handle);
    }
    bool find(std::uint64_t handle, Descriptions& descriptions) const {
        std::lock_guard lock(mutex_);
        auto found = entries_.find(handle);
        if (found == entries_.end()) return false;
        descriptions = found->second;
        return true;
    }

private:
    mutable std::mutex mutex_;
    std::unordered_map<std::uint64_t, Descriptions> entries_;
};

runtime::ResourceDescription describe(const CUDA_RESOURCE_DESC& d) {
    runtime::ResourceDescription resource;
    resource.type = d.resType;
    switch (d.resType) {
    case runtime::ResourceDescription::array:
        resource.from_array = find_handle<runtime::Array>(d.res.array.hArray);
        break;
    case runtime::ResourceDescription::mipmapped_array:
        resource.from_mipmap = find_handle<runtime::MipmappedArray>(d.res.mipmap.hMipmappedArray);
        break;
    case runtime::ResourceDescription::linear:
        resource.memory = d.res.linear.devPtr;
        resource.format = d.res.linear.format;
        resource.channels = d.res.linear.numChannels;
        resource.bytes = d.res.linear.sizeInBytes;
        break;
    case runtime::ResourceDescription::pitch2d:
        resource.memory = d.res.pitch2D.devPtr;
        resource.format = d.res.pitch2D.format;
        resource.channels = d.res.pitch2D.numChannels;
        resource.width = d.res.pitch2D.width;
        resource.height = d.res.pitch2D.height;
        resource.pitch = d.res.pitch2D.pitchInBytes;
        break;
    default: break;
    }
    return resource;
}

runtime::SamplerDescription describe(const CUDA_TEXTURE_DESC& d) {
    runtime::SamplerDescription sampler;
    std::copy_n(d.addressMode, 3, sampler.address);
    sampler.filter = d.filterMode;
    sampler.flags = d.flags;
    sampler.anisotropy = d.maxAnisotropy;
    sampler.level_filter = d.mipmapFilterMode;
    sampler.bias = d.mipmapLevelBias;
    sampler.lowest = d.minMipmapLevelClamp;
    sampler.highest = d.maxMipmapLevelClamp;
    std::copy_n(d.borderColor, 4, sampler.border_color);
    return sampler;
}

Status add(const TextureObject& object, const Descriptions& descriptions, unsigned long long* handle) {
    std::uint64_t number = 0;
    if (const Status status = TextureTable::get().add(object, number); status != Status::success) return status;
    DescriptionTable::get().add(number, descriptions);
    *handle = number;
    return Status::success;
}

/// An array of another context would be a peer's.
Status check_context(const runtime::ResourceDescription& resource, const Context& context) {
    const bool foreign = (resource.from_array && &resource.from_array->context() != &context) ||
                         (resource.from_mipmap && &resource.from_mipmap->context() != &context);
    return foreign ? Status::peer_access_not_enabled : Status::success;
}

/// A number that is no object is no error for the NVIDIA driver.
CUresult destroy(std::uint64_t handle, TextureObject::Kind kind) {
    return context_entry([&](Context&) {
        if (TextureTable::get().remove(handle, kind)) DescriptionTable::get().remove(handle);
        return Status::success;
    });
}

/// context_entry() for queries of an object: body(Descriptions&).
template <class Body>
CUresult object_entry(std::uint64_t handle, TextureObject::Kind kind, const void* result, Body&& body) {
    return context_entry([&](Context& context) {
        Descriptions descriptions;
        if (!result || !TextureTable::get().find(handle, kind) || !DescriptionTable::get().find(handle, descriptions) ||
            descriptions.context != &context)
            return Status::invalid_value;
        return body(descriptions);
    });
}

} // namespace

PTM_API(cuTexObjectCreate, CUtexObject* handle, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* sampler,
        const CUDA_RESOURCE_VIEW_DESC* view) {
    return context_entry([&](Context& context) {
        if (!handle || !resource || !sampler || resource->flags) return Status::invalid_value;
        TextureObject object;
        const runtime::SamplerDescription description = describe(*sampler);
        const runtime::ResourceDescription source = describe(*resource);
        Status status = check_context(source, context);
        if (status == Status::success) status = runtime::make_texture(source, description, object);
        if (status == Status::success && view)
            status = runtime::apply_view({view->format, view->width, view->height, view->depth, view->firstMipmapLevel,
                                          view->lastMipmapLevel, view->firstLayer, view->lastLayer},
                                         description, object);
        return status == Status::success
                   ? add(object, {*resource, *sampler, view ? *view : CUDA_RESOURCE_VIEW_DESC{}, &context}, handle)
                   : status;
    });
}
PTM_API(cuTexObjectDestroy, CUtexObject handle) {
    return destroy(handle, TextureObject::Kind::texture);
}
PTM_API(cuTexObjectGetResourceDesc, CUDA_RESOURCE_DESC* resource, CUtexObject handle) {
    return object_entry(handle, TextureObject::Kind::texture, resource, [&](Descriptions& d) {
        *resource = d.resource;
        return Status::success;
    });
}
PTM_API(cuTexObjectGetTextureDesc, CUDA_TEXTURE_DESC* sampler, CUtexObject handle) {
    return object_entry(handle, TextureObject::Kind::texture, sampler, [&](Descriptions& d) {
        *sampler = d.sampler;
        return Status::success;
    });
}
PTM_API(cuTexObjectGetResourceViewDesc, CUDA_RESOURCE_VIEW_DESC* view, CUtexObject handle) {
    return object_entry(handle, TextureObject::Kind::texture, view, [&](Descriptions& d) {
        *view = d.view; // zeros if there is none
        return Status::success;
    });
}

PTM_API(cuSurfObjectCreate, CUsurfObject* handle, const CUDA_RESOURCE_DESC* resource) {
    return context_entry([&](Context& context) {
        if (!handle || !resource || resource->flags) return Status::invalid_value;
        TextureObject object;
        const runtime::ResourceDescription source = describe(*resource);
        Status status = check_context(source, context);
        if (status == Status::success) status = runtime::make_surface(source, object);
        return status == Status::success ? add(object, {*resource, {}, {}, &context}, handle) : status;
    });
}
PTM_API(cuSurfObjectDestroy, CUsurfObject handle) {
    return destroy(handle, TextureObject::Kind::surface);
}
PTM_API(cuSurfObjectGetResourceDesc, CUDA_RESOURCE_DESC* resource, CUsurfObject handle) {
    return object_entry(handle, TextureObject::Kind::surface, resource, [&](Descriptions& d) {
        *resource = d.resource;
        return Status::success;
    });
}
