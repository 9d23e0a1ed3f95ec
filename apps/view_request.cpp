#include "apps/view_request.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/error.h"

namespace backdrive::app {
namespace {

using Json = nlohmann::json;

/// Takes the request in as it is read: nothing is built of what it may not have.
class ViewRequestReader : public nlohmann::json_sax<Json> {
 public:
  ViewRequest request;

  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("true or false"); }
  bool number_integer(number_integer_t value) override { return number(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool binary(binary_t&) override { return refuse("bytes"); }
  bool start_array(std::size_t) override { return refuse("a list"); }
  bool end_array() override { return refuse("a list"); }

  bool string(string_t& value) override {
    if (depth_ == 1 && key_ == "wanted" && (value == "motion" || value == "gradient")) {
      request.wanted = value == "motion" ? ViewRequest::Wanted::motion : ViewRequest::Wanted::gradient;
      return true;
    }
    if (depth_ == 1 && key_ == "shapes" && value.size() <= ViewRequest::kLongestPath) {
      request.shapes = value;
      return true;
    }
    return refuse("a text");
  }
  bool start_object(std::size_t) override {
    if (depth_ > 1 || (depth_ == 1 && key_ != "values")) return refuse("an object");
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool key(string_t& value) override {
    key_ = value.substr(0, ViewRequest::kLongestPath);
    if (value.size() > ViewRequest::kLongestPath)
      input_error("request: a key of " + std::to_string(value.size()) + " bytes");
    if (!seen_.insert({depth_, key_}).second) input_error("request: '" + key_ + "' is there twice");
    const bool known = depth_ > 1 || key_ == "wanted" || key_ == "shapes" || key_ == "values";
    if (!known) input_error("request: '" + key_ + "': expected wanted, shapes or values");
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    input_error("request: byte " + std::to_string(position) + ": expected JSON with numbers of 64 bits");
  }

 private:
  bool number(double value) {
    if (depth_ != 2) return refuse("a number");
    if (!std::isfinite(value)) input_error(key_ + ": expected a finite number");
    if (request.values.size() == ViewRequest::kMostValues) {
      input_error("request: expected at most " + std::to_string(ViewRequest::kMostValues) + " values");
    }
    request.values.emplace_back(key_, value);
    return true;
  }
  bool refuse(const char* what) const {
    if (depth_ == 2) input_error(key_ + ": " + what + ", expected a number");
    input_error(depth_ == 0 ? std::string("request: ") + what + ", expected an object"
                            : "request: '" + key_ + "': " + what + " has no meaning there");
  }

  int depth_ = 0;
  std::string key_;
  std::set<std::pair<int, std::string>> seen_;
};

}  // namespace

ViewRequest read_view_request(std::string_view text) {
  ViewRequestReader reader;
  Json::sax_parse(text.begin(), text.end(), &reader);
  return std::move(reader.request);
}

}  // namespace backdrive::app
