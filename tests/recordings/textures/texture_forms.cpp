// SPDX-License-Identifier: Apache-2.0
// Samples textures through the driver API in every recorded combination and compares a hash of the results with the one
// recorded on a GPU. Needs only the driver API, so the same program records and verifies:
//   texture_forms LIBCUDA RECORDING                compares; fails if a case differs or a known difference is gone
//   texture_forms LIBCUDA RECORDING --record       prints the list with the hashes of this driver, '~' kept
//   texture_forms LIBCUDA RECORDING --raw FILE     also writes all results: 4 words per sample, case after case
//   texture_forms LIBCUDA RECORDING --against FILE shows how results differ from such a file
// A line of the recording: hash (or the driver's error, e801), case. '~' before it: known to differ.
#include "tests/recordings/textures/recording.h"
#include "tests/recordings/textures/texture_case.h"

#include <bit>
#include <cstdio>

using namespace texture_recording;

namespace {

void fill(Driver& driver, CUarray array, const Case& c, unsigned level) {
    const auto extent = c.extent(level);
    const auto texels = texels_of(c, level);
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = 1;
    copy.srcHost = texels.data();
    copy.WidthInBytes = copy.srcPitch = std::size_t{extent[0]} * element_bytes(c.format, c.channels);
    copy.Height = copy.srcHeight = extent[1];
    copy.Depth = extent[2];
    copy.dstMemoryType = 3;
    copy.dstArray = array;
    driver.call("cuMemcpy3D_v2", &copy);
}

/// The resource that a case samples; freed with its object.
class Texture {
public:
    Texture(Driver& driver, const Case& c) : driver_(driver) {
        try {
            make(c);
            CUDA_TEXTURE_DESC sampler = c.sampler;
            driver.call<CUtexObject*, CUDA_RESOURCE_DESC*, CUDA_TEXTURE_DESC*, void*>("cuTexObjectCreate", &object, &resource_,
                                                                                      &sampler, nullptr);
        } catch (...) {
            release();
            throw;
        }
    }
    ~Texture() { release(); }
    Texture(const Texture&) = delete;
    Texture& operator=(const Texture&) = delete;
    CUtexObject object = 0;

private:
    void make(const Case& c) {
        resource_.resType = unsigned(c.source);
        const CUDA_ARRAY3D_DESCRIPTOR shape{c.size[0], c.size[1], c.size[2], c.format, c.channels, c.array_flags};
        const std::size_t row = std::size_t{c.size[0]} * element_bytes(c.format, c.channels);
        const auto texels = texels_of(c, 0);
        switch (c.source) {
        case Source::array:
            driver_.call("cuArray3DCreate_v2", &array_, &shape);
            resource_.res.array.hArray = array_;
            return fill(driver_, array_, c, 0);
        case Source::mipmap:
            driver_.call("cuMipmappedArrayCreate", &mipmap_, &shape, c.levels);
            resource_.res.mipmap.hMipmappedArray = mipmap_;
            for (unsigned level = 0; level < c.levels; ++level) {
                CUarray array = nullptr;
                driver_.call("cuMipmappedArrayGetLevel", &array, mipmap_, level);
                fill(driver_, array, c, level);
            }
            return;
        case Source::linear:
            memory_ = driver_.upload(texels.data(), texels.size());
            resource_.res.linear = {memory_, c.format, c.channels, texels.size()};
            return;
        case Source::pitch:
            driver_.call("cuMemAlloc_v2", &memory_, std::size_t{512} * c.size[1]);
            for (unsigned y = 0; y < c.size[1]; ++y)
                driver_.call("cuMemcpyHtoD_v2", memory_ + 512 * y, static_cast<const void*>(texels.data() + y * row), row);
            resource_.res.pitch2D = {memory_, c.format, c.channels, c.size[0], c.size[1], 512};
        }
    }
    void release() {
        try {
            if (object) driver_.call("cuTexObjectDestroy", object);
            if (array_) driver_.call("cuArrayDestroy", array_);
            if (mipmap_) driver_.call("cuMipmappedArrayDestroy", mipmap_);
            if (memory_) driver_.call("cuMemFree_v2", memory_);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s\n", error.what());
        }
    }
    Driver& driver_;
    CUDA_RESOURCE_DESC resource_{};
    CUarray array_ = nullptr;
    CUmipmappedArray mipmap_ = nullptr;
    CUdeviceptr memory_ = 0;
};

std::vector<std::uint32_t> run(Driver& driver, CUfunction function, const Case& c) {
    const Texture texture(driver, c);
    const auto inputs = inputs_of(c);
    std::vector<std::uint32_t> results(std::size_t{c.samples} * 4, 0xcdcdcdcd);
    CUdeviceptr in = driver.upload(inputs.data(), inputs.size() * 4), out = driver.upload(results.data(), results.size() * 4);
    CUtexObject object = texture.object;
    unsigned count = c.samples;
    void* parameters[] = {&object, &in, &out, &count};
    driver.launch(function, (count + 127) / 128, 128, parameters);
    driver.call("cuMemcpyDtoH_v2", static_cast<void*>(results.data()), out, results.size() * 4);
    driver.call("cuMemFree_v2", in);
    driver.call("cuMemFree_v2", out);
    return results;
}

std::string inputs_text(const Case& c, std::size_t word) {
    const auto inputs = inputs_of(c);
    std::string text = "inputs of sample " + std::to_string(word / 4) + ":";
    for (unsigned i = 0; i < compare_at; ++i) {
        const std::uint32_t bits = inputs[word / 4 * input_words + i];
        char number[40];
        std::snprintf(number, sizeof number, " %08x(%.9g)", bits, double(std::bit_cast<float>(bits)));
        text += number;
    }
    return text;
}

} // namespace

int main(int argc, char** argv) {
    return record_or_compare(argc, argv, [](Driver& driver, Recording& recording) {
        std::map<std::string, CUfunction> functions;
        for (const Case& c : all_cases())
            recording.take(
                c.name,
                [&] {
                    CUfunction& function = functions[kernel_key(c)];
                    if (!function) {
                        const CUmodule module =
                            driver.load(".version 8.0\n.target sm_90\n.address_size 64\n" + kernel_text(c, "fetch"));
                        driver.call<CUfunction*, CUmodule, const char*>("cuModuleGetFunction", &function, module, "fetch");
                    }
                    return run(driver, function, c);
                },
                [&](std::size_t word) { return inputs_text(c, word); });
    });
}
