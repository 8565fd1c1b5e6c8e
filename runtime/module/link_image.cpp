// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/link_image.h"

#include "frontend/link/linker.h"

namespace ptarmigan::runtime {
namespace {

void add_line(std::string& log, const std::string& line) {
    if (!log.empty()) log += "\n";
    log += line;
}

} // namespace

bool link_image(ImagePtx& image, std::string& log) {
    if (image.units.empty()) return true;
    log.clear();
    ptx::Linker linker([](std::string_view) { return true; });
    for (PtxUnit& unit : image.units) {
        std::string messages;
        if (!linker.add(std::move(unit.text), std::move(unit.name), messages)) add_line(log, messages);
    }
    if (!log.empty()) return false;
    ptx::LinkResult result = linker.link();
    for (const std::string& error : result.errors) add_line(log, "error   : " + error);
    if (!result.ok && image.units_without_ptx != 0)
        add_line(log, "note    : " + std::to_string(image.units_without_ptx) +
                          " of the translation units have no PTX for this device");
    image.units.clear();
    image.text = std::move(result.text);
    return result.ok;
}

} // namespace ptarmigan::runtime
