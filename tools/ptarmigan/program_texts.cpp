// SPDX-License-Identifier: Apache-2.0
#include "tools/ptarmigan/program_texts.h"

#include "runtime/module/fatbin.h"
#include "runtime/module/host_object.h"
#include "runtime/module/image_options.h"
#include "runtime/module/kernel_cache.h"
#include "runtime/module/link_image.h"
#include "tools/ptarmigan/commands.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

namespace ptarmigan::tool {
namespace {

namespace fs = std::filesystem;

class Finder {
public:
    /// A file that somebody named: what is no program is a fault.
    void look_into(const std::string& path) {
        std::string bytes;
        if (!read_file(path, bytes)) {
            ++found.unreadable;
            return;
        }
        ++found.files;
        if (!add_all(path, bytes)) ++found.faults["neither PTX, a fat binary, a cubin nor a program with one of them"];
    }

    /// A file of a folder, where most are something else.
    void look_into_part(const fs::path& path) {
        std::ifstream file(path, std::ios::binary);
        char start[4] = {};
        if (!file.read(start, sizeof start)) return;
        const bool is_text = path.extension() == ".ptx";
        const runtime::ImageKind kind = runtime::image_kind(start, sizeof start);
        if (!is_text && kind != runtime::ImageKind::elf && kind != runtime::ImageKind::container) return;
        std::string bytes;
        if (!read_file(path, bytes)) {
            ++found.unreadable;
            return;
        }
        if (add_all(path, bytes)) ++found.files;
    }

    ProgramTexts found;

private:
    /// False if there is no device code at all. What suits the device in none of its images is a fault of files that
    /// have nothing else.
    bool add_all(const std::string& path, const std::string& bytes) {
        usable_ = 0;
        unsuitable_.clear();
        if (!add_images(path, bytes)) return false;
        for (const auto& [cause, count] : unsuitable_)
            if (usable_ == 0)
                found.faults[cause] += count;
            else
                found.unsuitable += count;
        return true;
    }

    bool add_images(const std::string& path, const std::string& bytes) {
        const auto data = std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
        switch (runtime::image_kind(bytes.data(), bytes.size())) {
        case runtime::ImageKind::ptx_text:
            add(path, runtime::read_image(bytes.data(), bytes.size(), options_));
            return true;
        case runtime::ImageKind::container: add_containers(path, data); return true;
        case runtime::ImageKind::elf:
            if (!runtime::is_cubin(bytes.data(), bytes.size())) break;
            add(path, runtime::read_image(bytes.data(), bytes.size(), options_));
            return true;
        default: return false;
        }
        const runtime::ProgramCode code = runtime::find_program_code(data);
        std::vector<std::pair<const void*, std::size_t>> units;
        for (const auto& unit : code.units) units.emplace_back(unit.data(), unit.size());
        bool has_units = false;
        if (!units.empty() && !options_.prefers_sass) {
            runtime::ImagePtx linked = runtime::read_units(units, options_);
            has_units = linked.result != runtime::ImageResult::no_binary_for_device && !linked.is_passed_over;
            if (has_units || !options_.lifts) add(path, std::move(linked));
        }
        for (const auto& container : code.containers) {
            // What was linked of units has no PTX of its own: only where they have none it is what is loaded.
            const auto contents = runtime::list_container(container.data(), container.size());
            if (has_units && contents.sound && contents.ptx.empty()) continue;
            add(path, runtime::read_image(container.data(), container.size(), options_));
        }
        return !code.containers.empty() || !units.empty();
    }

    /// A file may hold several, one behind the other.
    void add_containers(const std::string& path, std::span<const std::uint8_t> rest) {
        while (const std::uint64_t extent = runtime::container_extent(rest.data(), rest.size())) {
            add(path, runtime::read_image(rest.data(), extent, options_));
            rest = rest.subspan(std::min<std::uint64_t>((extent + 7) / 8 * 8, rest.size()));
        }
    }

    void add(const std::string& path, runtime::ImagePtx image) {
        std::string log;
        if (image.result == runtime::ImageResult::no_binary_for_device) {
            ++unsuitable_[image.message];
        } else if (image.result != runtime::ImageResult::ok) {
            ++found.faults[image.message];
        } else if (!runtime::link_image(image, log)) {
            ++found.faults["its units can't be linked: " + log];
        } else {
            ++usable_;
            const runtime::TextHash hash =
                runtime::hash_text(image.machine_code ? image.machine_code->image() : std::string_view(image.text));
            if (seen_.emplace(hash.low, hash.high).second)
                found.texts.push_back({path, std::move(image.text), image.is_newer, std::move(image.machine_code)});
        }
    }

    const runtime::ImageOptions options_ = runtime::image_options_of_loads();
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen_; ///< texts by hash
    // Of the file at hand:
    std::size_t usable_ = 0;
    std::map<std::string, std::size_t> unsuitable_;
};

} // namespace

ProgramTexts find_texts(const std::vector<std::string>& paths) {
    Finder finder;
    for (const std::string& path : paths) {
        std::error_code error;
        if (!fs::is_directory(path, error)) {
            finder.look_into(path);
            continue;
        }
        constexpr auto permitted = fs::directory_options::skip_permission_denied;
        std::vector<fs::path> files;
        for (fs::recursive_directory_iterator entry(path, permitted, error), end; !error && entry != end;
             entry.increment(error))
            if (entry->is_regular_file(error)) files.push_back(entry->path());
        std::sort(files.begin(), files.end()); // the same order on every machine
        for (const fs::path& file : files) finder.look_into_part(file);
    }
    return std::move(finder.found);
}

} // namespace ptarmigan::tool
