// SPDX-License-Identifier: Apache-2.0
// Finding libptarmigan-translator.so, telling which build it is, and loading it.
#pragma once

#include <stdexcept>
#include <string>

namespace ptarmigan::runtime {

/// The translator's library is not there, can't be loaded or is of another version.
class MissingTranslator : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Path of the translator library beside the library or program that this code is in; empty if it is not there.
std::string default_translator_path();

/// What tells one build of the translator from another, without loading it: the linker's build id, else the file's size
/// and time. Empty if the file can't be read.
std::string translator_build_id(const std::string& library_path);

/// The linker's build id of the library or program that this code is in; empty if it was linked without one.
std::string runtime_build_id();

} // namespace ptarmigan::runtime
