// SPDX-License-Identifier: Apache-2.0
// Reader of the images that programs hand to the driver: PTX text, fat binary wrappers and
// containers (plain, LZ4, Zstandard), bare cubins. It finds the PTX that suits a device. The layout
// of the fields: fatbin.cpp.
#pragma once

#include "frontend/sass/lift.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptarmigan::runtime {

/// What the first bytes of an image say that it is.
enum class ImageKind : std::uint8_t { unknown, ptx_text, elf, container, wrapper };

/// Why an image yields no PTX; each value has one CUresult (see image_result_code()).
enum class ImageResult : std::uint8_t {
    ok,
    no_binary_for_device, ///< no PTX, or only for newer architectures: 209
    invalid_image,        ///< damaged or unknown: 200
};

/// One entry of a container, PTX or a cubin, not yet unpacked.
struct PtxEntry {
    unsigned architecture = 0; ///< 90 for sm_90
    char variant = 0;          ///< 'a' architecture-specific, 'f' family, 0 plain
    unsigned isa_major = 0, isa_minor = 0;
    std::string options;                   ///< ptxas options stored beside the text
    std::string source_name;               ///< with -lineinfo or -G only
    const std::uint8_t* payload = nullptr; ///< points into the image
    std::uint64_t stored_size = 0;
    std::uint64_t text_size = 0; ///< 0: as stored
    std::uint64_t flags = 0;
};

/// Everything a container holds, as far as its headers are sound.
struct ContainerContents {
    bool sound = false; ///< all headers lie inside the container
    std::vector<PtxEntry> ptx;
    std::vector<unsigned> sass; ///< architectures of cubins
    std::vector<PtxEntry> cubins;
    unsigned lto_entries = 0;
};

/// The PTX of one translation unit of relocatable device code.
struct PtxUnit {
    std::string text;
    std::string name; ///< for messages
};

/// PTX that is unpacked if somebody needs it: a copy, since a program may free the image.
struct PackedPtx {
    PtxEntry entry; ///< `payload` points to `bytes`
    std::string bytes;
    bool is_newer = false; ///< for a newer architecture than the device's
};

/// The chosen PTX of an image, or the reason that there is none.
struct ImagePtx {
    ImageResult result = ImageResult::invalid_image;
    std::string text;
    std::vector<PtxUnit> units;     ///< several that must be linked (link_image()): then `text` is empty
    unsigned units_without_ptx = 0; ///< further translation units, of which nothing can be used
    std::string message;            ///< when result != ok: what is wrong, for one line on stderr
    std::string advice;             ///< what helps, if the program is the user's own; may be empty
    unsigned architecture = 0;
    /// Where `text` declares what machine code has: the code, whose kernels are not lifted yet.
    std::shared_ptr<const sass::MachineCode> machine_code;
    std::shared_ptr<const PackedPtx> ptx_beside; ///< of the machine code; null if there is none
    bool is_passed_over = false;                 ///< a GPU would take machine code; of units: what was linked of them
    bool is_newer = false; ///< for a newer architecture than the device's: taken as the last resort
};

struct ImageOptions {
    unsigned device_architecture = 90; ///< major * 10 + minor
    bool accept_newer = false;         ///< take PTX for newer architectures when nothing else is there
    bool replaces_sass = true;         ///< likewise in whole programs with machine code that the device would run
    bool lifts = false;                ///< take machine code where no PTX suits the device, or a GPU would pass it over
    bool prefers_sass = false;         ///< with `lifts`: even where PTX suits
    /// Machine code is the device's only if it is of its major number, as with a GPU's driver. Else that of earlier
    /// ones is taken, too.
    bool own_generation_only = false;
};

/// `size` bounds every read (SIZE_MAX: unknown; then sizes stated by the headers are trusted within
/// 2 GiB, and text ends at its NUL). Never throws for bad input.
ImageKind image_kind(const void* image, std::size_t size = SIZE_MAX);

/// Whether an image of kind `elf` is for a GPU rather than for a host.
bool is_cubin(const void* image, std::size_t size = SIZE_MAX);

/// Lists a container; `size` as above.
ContainerContents list_container(const void* container, std::size_t size = SIZE_MAX);

/// Whether read_image() would find PTX among these entries.
bool has_suitable_ptx(const ContainerContents& contents, const ImageOptions& options);

/// Bytes that a container says it takes, header included; 0 if there is none or it is cut short.
std::uint64_t container_extent(const void* container, std::size_t size);

/// Unpacks one entry's text; empty on damage.
std::string unpack_ptx(const PtxEntry& entry);

/// The PTX that the driver would compile for the device: the highest architecture that it has, `a`
/// variants only when the architecture is equal; machine code where the driver would take that although there is PTX
/// for a lower architecture. Where there is none but machine code for the device, as in what
/// `nvcc -arch=all-major` makes, the PTX for the nearest newer architecture stands in for that. A wrapper's inner
/// pointers are followed without bounds: the program's own data.
ImagePtx read_image(const void* image, std::size_t size, const ImageOptions& options);

/// The same for the translation units of relocatable device code that was linked, in the order of the program's list.
ImagePtx read_units(const std::vector<std::pair<const void*, std::size_t>>& containers, const ImageOptions& options);

/// Message and advice.
std::string describe_failure(const ImagePtx& image);

/// CUresult number of a result: 0, 209, 200.
int image_result_code(ImageResult result);

} // namespace ptarmigan::runtime
