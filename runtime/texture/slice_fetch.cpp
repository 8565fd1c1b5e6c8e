// SPDX-License-Identifier: Apache-2.0
// A fetch is a sum over one or two levels, each of one or two slices of four texels. Lanes may be in slices and levels
// of their own, so places, rows and sizes are kept lane by lane.
#include "runtime/texture/slice_fetch.h"

#include "runtime/texture/fetch_of.h"
#include "runtime/texture/level_of_detail.h"
#include "runtime/texture/slice_lanes.h"

#include <algorithm>
#include <cstring>

namespace ptarmigan::runtime {
namespace {

using namespace plane;
using Kind = TexelFormat::Kind;
using Geometry = abi::TextureGeometry;

struct Volume {
    const TextureObject& texture;
    const TextureObject* const* each; ///< of each lane, where they are of several textures; null otherwise
    ImageLevel base;                  ///< where places are counted from
    Plane plane;
    Dimension z;
    bool is_deep;                                  ///< three dimensions
    bool is_open;                                  ///< a cube whose filters go on over its edges
    bool can_sum;                                  ///< sums of the format are made here
    std::uint32_t levels_start[Image::max_levels]; ///< bytes
};

bool is_sliced(const Call& call, const TextureObject& texture) {
    const Image& image = texture.image;
    const ImageLevel& level = image.level[0];
    const auto geometry = static_cast<Geometry>(call.geometry);
    const bool is_cube = geometry == Geometry::cube || geometry == Geometry::acube;
    return static_cast<abi::TextureOperation>(call.operation) == abi::TextureOperation::fetch &&
           (call.flags & ~(Call::with_level | Call::with_gradients)) == 0 &&
           !((call.flags & Call::with_gradients) && texture.sampler.anisotropy > 1) &&
           image.format.block == TexelFormat::Block::none && is_cube == image.cube &&
           (is_cube || coordinates_of(geometry) == image.dimensions) && level.width != 0 && level.height != 0 &&
           level.depth != 0 && level.width < too_large && level.height < too_large && level.depth < too_large;
}

constexpr std::size_t most_bytes = std::size_t{1} << 31;

bool lies_near(const ImageLevel& level, std::uint32_t layers, const std::uint8_t* first) {
    const auto start = static_cast<std::size_t>(level.data - first);
    return start < most_bytes && level.row % 4 == 0 && level.row < most_bytes && level.slice < most_bytes &&
           start + level.slice * std::max(level.depth, layers) < most_bytes;
}

/// Where all levels lie, if that is within 2^31 bytes.
bool place_levels(const Image& image, Volume& volume) {
    std::uint8_t* first = image.level[0].data;
    for (unsigned i = 1; i < image.levels; ++i) first = std::min(first, image.level[i].data);
    for (unsigned i = 0; i < image.levels; ++i) {
        if (!lies_near(image.level[i], image.layers, first)) return false;
        volume.levels_start[i] = static_cast<std::uint32_t>(image.level[i].data - first);
    }
    volume.base.data = first;
    return (reinterpret_cast<std::uintptr_t>(first) & 3) == 0;
}

/// The textures of a step, each once.
struct FewTextures {
    explicit FewTextures(const Textures& textures) {
        for (const TextureObject* texture : textures)
            if (std::find(begin(), end(), texture) == end()) list[count++] = texture;
    }
    const TextureObject* const* begin() const { return list.data(); }
    const TextureObject* const* end() const { return list.data() + count; }
    Textures list{};
    std::size_t count = 0;
};

/// Likewise of several textures.
bool place_textures(const FewTextures& textures, Volume& volume) {
    std::uint8_t* first = textures.list[0]->image.level[0].data;
    std::uintptr_t odd = 0;
    for (const TextureObject* texture : textures)
        for (unsigned i = 0; i < texture->image.levels; ++i) {
            first = std::min(first, texture->image.level[i].data);
            odd |= reinterpret_cast<std::uintptr_t>(texture->image.level[i].data);
        }
    volume.base.data = first;
    for (const TextureObject* texture : textures)
        for (unsigned i = 0; i < texture->image.levels; ++i)
            if (!lies_near(texture->image.level[i], texture->image.layers, first)) return false;
    return (odd & 3) == 0;
}

/// They differ in their sizes and where they lie only.
bool is_alike(const TextureObject& a, const TextureObject& b) {
    return a.image.dimensions == b.image.dimensions && a.image.layered == b.image.layered &&
           a.image.cube == b.image.cube && a.image.layers == b.image.layers && a.image.levels == b.image.levels &&
           a.image.mipmapped == b.image.mipmapped && a.image.format == b.image.format && a.sampler == b.sampler &&
           std::memcmp(a.sampler.border_color, b.sampler.border_color, sizeof a.sampler.border_color) == 0; // signs
}

/// The levels of all lanes, and how much of the second, in 256ths.
template <unsigned lanes> struct LevelLanes { std::int32_t number[2][lanes], fraction[lanes]; };

template <unsigned lanes>
PLANE_INLINE void choose_level_lanes(const Call& call, const Volume& volume, LevelLanes<lanes>& levels) {
    const LevelRange range = level_range(volume.texture);
    for (unsigned lane = 0; lane < lanes; ++lane) {
        std::int32_t level = 0;
        if (call.flags & Call::with_level) level = level_in_256ths(std::bit_cast<float>(call.level[lane])) + range.bias;
        level = smaller(larger(level, range.lowest), range.highest);
        level = smaller(larger(level, 0), range.last);
        if (!range.is_linear) level = (level + 128) & ~255;
        levels.number[0][lane] = level >> 8;
        levels.number[1][lane] = smaller((level >> 8) + 1, range.last >> 8);
        levels.fraction[lane] = level & 255;
    }
    if ((call.flags & Call::with_level) || !(call.flags & Call::with_gradients)) return;
    for (std::uint64_t left = call.active; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        const LevelChoice choice =
            choose_levels(volume.each ? *volume.each[lane] : volume.texture, fetch_of(call, lane));
        levels.number[0][lane] = static_cast<std::int32_t>(choice.first);
        levels.number[1][lane] = static_cast<std::int32_t>(choice.second);
        levels.fraction[lane] = static_cast<std::int32_t>(choice.fraction);
    }
}

/// The level of each lane, as arrays.
template <unsigned lanes> struct LevelSizes {
    std::int32_t width[lanes], height[lanes], depth[lanes];
    std::uint32_t start[lanes], row[lanes], slice[lanes];

    PLANE_INLINE void take(const Volume& volume, const std::int32_t (&number)[lanes]) {
        const Image& image = volume.texture.image;
        std::int32_t apart = 0;
        for (unsigned lane = 0; lane < lanes; ++lane) apart |= number[lane] ^ number[0];
        const auto put = [&](unsigned lane, const ImageLevel& level, std::uint32_t from) {
            width[lane] = static_cast<std::int32_t>(level.width);
            height[lane] = static_cast<std::int32_t>(level.height);
            depth[lane] = static_cast<std::int32_t>(level.depth);
            row[lane] = static_cast<std::uint32_t>(level.row);
            slice[lane] = static_cast<std::uint32_t>(level.slice);
            start[lane] = from;
        };
        if (volume.each) {
            for (unsigned lane = 0; lane < lanes; ++lane) {
                const ImageLevel& level = volume.each[lane]->image.level[number[lane]];
                put(lane, level, static_cast<std::uint32_t>(level.data - volume.base.data));
            }
            return;
        }
        if (apart == 0) {
            const ImageLevel level = image.level[number[0]];
            const std::uint32_t from = volume.levels_start[number[0]];
            for (unsigned lane = 0; lane < lanes; ++lane) put(lane, level, from);
            return;
        }
        for (unsigned lane = 0; lane < lanes; ++lane)
            put(lane, image.level[number[lane]], volume.levels_start[number[lane]]);
    }
};

/// Sums of one channel over all slices.
template <unsigned lanes> struct ChannelSums {
    SliceTotal<lanes> total[4];
    SlicePart<lanes> part[4][2];
    std::int32_t integers[4][lanes];
};

/// Adds the texels around the corners, of slice `number` of its level, to `part` or `integers`.
template <unsigned lanes>
PLANE_INLINE void add_slice(const Volume& volume, const SliceCorners<lanes>& corners, unsigned number,
                            ChannelSums<lanes>& sums, std::int32_t* __restrict special) {
    const Plane& plane = volume.plane;
    const TexelFormat& format = plane.reading.format;
    alignas(64) std::uint32_t texel[4][4][lanes]; ///< by channel, corner, lane
    alignas(64) std::uint32_t bytes[4][lanes];
    load_sum_texels(plane, corners, texel, bytes);
    for (unsigned i = 0; i < format.channels; ++i) {
        if (!format.is_real()) {
            if (plane.plain_bytes) take_corner_bytes(plane, bytes, i, texel[i]);
            add_integers(texel[i], corners.weight, sums.integers[i]);
            continue;
        }
        std::int32_t rare[lanes];
        if (format.kind == Kind::single) {
            SinglesSum<lanes> sum;
            sum.make(texel[i], corners.weight, rare);
            sums.part[i][number].take(sum);
        } else {
            HalvesSum<lanes> sum;
            sum.make(texel[i], corners.weight, rare);
            sums.part[i][number].take(sum);
        }
        for (unsigned lane = 0; lane < lanes; ++lane) {
            special[lane] |= rare[lane];
            sums.total[i].signs[lane] |= static_cast<std::int32_t>(texel[i][0][lane] | texel[i][1][lane] |
                                                                   texel[i][2][lane] | texel[i][3][lane]);
        }
    }
}

template <unsigned lanes>
PLANE_INLINE void give_sums(Call& call, const Volume& volume, const ChannelSums<lanes>& sums,
                            std::int32_t* __restrict special) {
    const TexelFormat& format = volume.plane.reading.format;
    for (unsigned i = 0; i < 4; ++i) {
        if (i >= format.channels) {
            give_zeros<lanes>(call, i);
            continue;
        }
        std::uint32_t result[lanes];
        if (format.kind == Kind::single)
            sums.total[i].finish_singles(result, special);
        else if (format.kind == Kind::half)
            sums.total[i].finish_halves(result, special);
        else
            finish_integers(sums.integers[i], format, result);
        give(call, i, result);
    }
}

/// Lanes whose filters reach over the edge of a face.
template <unsigned lanes>
PLANE_INLINE void mark_edges(const float (&coordinates)[lanes], const std::int32_t (&size)[lanes],
                             std::int32_t* __restrict special) {
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const std::int32_t at = position<true, Sampler::clamp>(coordinates[lane], size[lane], 1) - 128;
        special[lane] |= (at < 0 ? -1 : 0) | (at >= (size[lane] - 1) * 256 ? -1 : 0);
    }
}

template <unsigned lanes> PLANE_INLINE std::uint64_t fetch_lanes(Call& call, const Volume& volume) {
    const Image& image = volume.texture.image;
    const unsigned first = has_layer(static_cast<Geometry>(call.geometry)) ? 1 : 0;
    alignas(64) float coordinates[3][lanes];
    alignas(64) std::uint32_t layer[lanes];
    alignas(64) std::int32_t special[lanes] = {};
    for (unsigned i = 0; i < 3; ++i)
        for (unsigned lane = 0; lane < lanes; ++lane)
            coordinates[i][lane] =
                i < (image.cube ? 3u : image.dimensions) ? std::bit_cast<float>(call.coordinates[first + i][lane]) : 0;
    const std::uint32_t last =
        first != 0 && (image.layered || image.cube) ? image.layers / (image.cube ? 6 : 1) - 1 : 0;
    for (unsigned lane = 0; lane < lanes; ++lane) layer[lane] = smaller(call.coordinates[0][lane], last);
    if (image.cube) {
        CubeLanes<lanes> cube;
        cube.meet(coordinates);
        for (unsigned lane = 0; lane < lanes; ++lane) {
            layer[lane] = layer[lane] * 6 + cube.face[lane];
            coordinates[0][lane] = cube.s[lane];
            coordinates[1][lane] = cube.t[lane];
        }
    }
    LevelLanes<lanes> levels;
    std::int32_t between = 0; // levels
    std::memset(&levels, 0, sizeof levels);
    if (image.mipmapped) {
        choose_level_lanes(call, volume, levels);
        for (unsigned lane = 0; lane < lanes; ++lane) between |= levels.fraction[lane];
    }
    const bool sums_up = volume.plane.x.linear || between != 0;
    if (sums_up && !volume.can_sum) return call.active;
    for (unsigned lane = 0; lane < lanes && !volume.plane.x.linear; ++lane) // a texel alone is no sum
        special[lane] = levels.fraction[lane] == 0 ? -1 : 0;
    ChannelSums<lanes> sums;
    const unsigned channels = image.format.channels;
    for (unsigned i = 0; i < channels; ++i) {
        sums.total[i].clear();
        for (unsigned lane = 0; lane < lanes; ++lane) sums.integers[i][lane] = 0;
    }
    for (unsigned number = 0; number < (between != 0 ? 2u : 1u); ++number) {
        LevelSizes<lanes> sizes;
        SliceCorners<lanes> corners;
        Axis<lanes> z;
        sizes.take(volume, levels.number[number]);
        locate(coordinates[0], sizes.width, volume.plane.x, corners.x);
        locate(coordinates[1], sizes.height, volume.plane.y, corners.y);
        if (volume.is_open) {
            mark_edges(coordinates[0], sizes.width, special);
            mark_edges(coordinates[1], sizes.height, special);
        }
        std::int32_t deep = 0, total[lanes];
        if (volume.is_deep) {
            locate(coordinates[2], sizes.depth, volume.z, z);
            for (unsigned lane = 0; lane < lanes; ++lane) deep |= z.fraction[lane];
        }
        for (unsigned lane = 0; lane < lanes; ++lane)
            total[lane] = number == 0 ? 256 - levels.fraction[lane] : levels.fraction[lane];
        for (unsigned slice = 0; slice < (deep != 0 ? 2u : 1u); ++slice) {
            std::int32_t share[lanes];
            for (unsigned lane = 0; lane < lanes; ++lane) {
                const std::uint32_t at =
                    volume.is_deep ? static_cast<std::uint32_t>(z.texel[slice][lane]) : layer[lane];
                const std::int32_t fraction = volume.is_deep ? z.fraction[lane] : 0;
                const std::int32_t behind = (total[lane] * fraction + 127) >> 8;
                share[lane] = slice == 0 ? total[lane] - behind : behind;
                corners.start[lane] = sizes.start[lane] + at * sizes.slice[lane];
                corners.row[lane] = sizes.row[lane];
                corners.inside[lane] = volume.is_deep ? z.inside[slice][lane] : -1;
                corners.present[lane] =
                    (slice == 0 || fraction != 0 ? -1 : 0) & (number == 0 || levels.fraction[lane] != 0 ? -1 : 0);
            }
            if (!sums_up) {
                if (volume.plane.plain_bytes)
                    fetch_byte_points<lanes>(call, volume.plane, corners);
                else
                    fetch_points<lanes>(call, volume.plane, corners);
                return 0;
            }
            weigh(corners.x, corners.y, share, corners.weight);
            add_slice(volume, corners, slice, sums, special);
        }
        for (unsigned i = 0; i < channels && image.format.is_real(); ++i)
            sums.total[i].add(sums.part[i][0], sums.part[i][1], deep != 0);
    }
    give_sums(call, volume, sums, special);
    std::uint64_t left = 0;
    for (unsigned lane = 0; lane < lanes; ++lane) left |= std::uint64_t{special[lane] != 0} << lane;
    return left & call.active;
}

struct FetchLanes {
    template <unsigned lanes> PLANE_INLINE static std::uint64_t run(Call& call, const Volume& volume) {
        return fetch_lanes<lanes>(call, volume);
    }
};

/// Along dimension `index`; the size is each lane's.
Dimension dimension_of(const TextureObject& texture, unsigned index, bool is_open) {
    const Sampler& sampler = texture.sampler;
    const Image& image = texture.image;
    Dimension dimension{0, sampler.address[index], sampler.normalized || image.mipmapped || image.cube, sampler.linear};
    if (is_open || (!sampler.normalized && !image.cube && dimension.address != Sampler::border))
        dimension.address = Sampler::clamp;
    return dimension;
}

bool is_periodic(Sampler::Address address) {
    return address == Sampler::wrap || address == Sampler::mirror;
}

std::uint64_t fetch_from(Call& call, const TextureObject& texture, const Textures* each, const FewTextures* few,
                         VectorCode most) {
    const Image& image = texture.image;
    const Sampler& sampler = texture.sampler;
    const TexelFormat& format = image.format;
    const bool is_open = image.cube && sampler.seamless && sampler.linear;
    if (is_open && (is_periodic(sampler.address[0]) || is_periodic(sampler.address[1]))) return call.active;
    const bool short_reals = !format.is_real() && format.bits <= 16 && sampler.to_real && !sampler.srgb;
    Volume volume{texture,
                  each ? each->data() : nullptr,
                  {},
                  {volume.base,
                   {format, sampler.to_real, sampler.srgb},
                   dimension_of(texture, 0, is_open),
                   dimension_of(texture, 1, is_open),
                   {},
                   format.bytes(),
                   format.bits == 8 && !sampler.srgb,
                   format.kind == Kind::signed_integer,
                   false,
                   1u << 31,
                   0},
                  dimension_of(texture, 2, false),
                  image.dimensions == 3,
                  is_open,
                  format.is_real() || short_reals,
                  {}};
    if (!(each ? place_textures(*few, volume) : place_levels(image, volume))) return call.active;
    Plane& plane = volume.plane;
    if (image.dimensions == 1) // the only row of a plane
        plane.y.address = image.layered ? Sampler::clamp : sampler.address[1];
    plane.has_border = plane.x.address == Sampler::border || plane.y.address == Sampler::border ||
                       (volume.is_deep && volume.z.address == Sampler::border);
    if (plane.has_border) plane.border = store_color(sampler.border_color, plane.reading);
    for (unsigned i = 0; i < format.channels && plane.plain_bytes; ++i)
        plane.border_bytes |= (plane.border.channel[i] & 255) << (8 * i);
    return StepCode<FetchLanes, std::uint64_t, Call&, const Volume&>::run(call.active, most, call, volume);
}

} // namespace

std::uint64_t fetch_slices(abi::TextureCall& call, const TextureObject& texture, VectorCode most) {
    return is_sliced(call, texture) ? fetch_from(call, texture, nullptr, nullptr, most) : call.active;
}

std::uint64_t fetch_slices(abi::TextureCall& call, const Textures& textures, VectorCode most) {
    const FewTextures few(textures);
    const auto is_like_first = [&](const TextureObject* texture) {
        return is_sliced(call, *texture) && is_alike(*textures[0], *texture);
    };
    if (!std::all_of(few.begin(), few.end(), is_like_first)) return call.active;
    return fetch_from(call, *textures[0], &textures, &few, most);
}

} // namespace ptarmigan::runtime
