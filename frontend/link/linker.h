// SPDX-License-Identifier: Apache-2.0
// Several PTX texts to one, as the driver's linker joins relocatable objects: symbols of other
// texts are found by name, symbols of their own are kept apart. The result is a PTX text like any
// other (ptxas takes it too), so nothing behind the frontend knows of linking.
#pragma once

#include "frontend/ptx/module.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::ptx {

struct LinkUnit;
class SymbolTable;

struct LinkResult {
    bool ok = false;
    std::string text; ///< the linked PTX; empty on failure
    /// One line each, in the driver's words: "Undefined reference to 'foo' in 'a.ptx'".
    std::vector<std::string> errors;
};

/// Not thread-safe. May be used once.
class Linker {
public:
    /// `is_provided`: functions without a body that the runtime supplies (vprintf and the like).
    explicit Linker(std::function<bool(std::string_view)> is_provided);
    ~Linker();

    /// Adds a text that messages call `name`. False if its declarations have errors: they are in
    /// `messages` ("name:line:col: error: ..."), and the text is not part of the link. Bodies are
    /// not looked at: they are bound when the linked text is used. `on_demand`: a member of a
    /// library, which joins only if it defines a name that units before it miss. CUDA's device runtime
    /// (libcudadevrt) is taken and left out: whoever runs the text has its functions.
    bool add(std::string text, std::string name, std::string& messages, bool on_demand = false);
    std::size_t size() const { return units_.size(); }
    /// What the texts so far, libraries aside, contradict each other in, one line each in the
    /// driver's words: link() will fail with just these.
    const std::vector<std::string>& conflicts() const;

    /// Resolves all symbols and writes the text. A strong definition beats weak and common ones, of
    /// several weak ones the first stays, of several common ones the largest. Of no text at all it
    /// makes one without symbols. Errors: two strong
    /// definitions, none at all, and mentions that differ in kind, space, size or parameters.
    LinkResult link();

private:
    std::vector<std::unique_ptr<LinkUnit>> units_;
    std::unique_ptr<SymbolTable> symbols_; ///< of all units that are not on demand
    std::function<bool(std::string_view)> is_provided_;
};

} // namespace ptarmigan::ptx
