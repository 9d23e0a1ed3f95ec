#pragma once
#include <memory>
#include <string>
#include <vector>

namespace backdrive {

/// Which body, joint, shape or coupling: its number, in the order in which they were added. Converts from and to a
/// number, but no kind into another: a joint does not pass for a body.
template <class Kind>
struct ItemIndex {
  int value = -1;

  constexpr ItemIndex() = default;
  constexpr ItemIndex(int number) : value(number) {}  // NOLINT: numbers do
  constexpr operator int() const { return value; }    // NOLINT
};
using BodyIndex = ItemIndex<struct BodyKind>;          ///< −1: the world
using JointIndex = ItemIndex<struct JointKind>;        ///< −1: none
using ShapeIndex = ItemIndex<struct ShapeKind>;        ///< −1: none
using CouplingIndex = ItemIndex<struct CouplingKind>;  ///< −1: none

/// A list of names that copies share until one of them changes, so that a recording can keep a model's names for its
/// messages without copying them.
class Names {
 public:
  Names() = default;
  Names(std::vector<std::string> names) : shared_(std::make_shared<std::vector<std::string>>(std::move(names))) {}

  const std::vector<std::string>& list() const {
    static const std::vector<std::string> none;
    return shared_ ? *shared_ : none;
  }
  operator const std::vector<std::string>&() const { return list(); }

  void push_back(const std::string& name) {
    if (!shared_) {
      shared_ = std::make_shared<std::vector<std::string>>();
    } else if (shared_.use_count() > 1) {
      shared_ = std::make_shared<std::vector<std::string>>(*shared_);
    }
    shared_->push_back(name);
  }

  std::size_t size() const { return list().size(); }
  bool empty() const { return list().empty(); }
  const std::string& operator[](std::size_t i) const { return list()[i]; }
  const std::string& at(std::size_t i) const { return list().at(i); }
  auto begin() const { return list().begin(); }
  auto end() const { return list().end(); }
  friend bool operator==(const Names& a, const Names& b) { return a.list() == b.list(); }

 private:
  std::shared_ptr<std::vector<std::string>> shared_;
};

}  // namespace backdrive
