#include "models/views.h"

#include <algorithm>
#include <string>

#include "engine/error.h"
#include "models/parameter_list.h"

namespace backdrive {
namespace {

[[noreturn]] void several(const Model& model, std::string_view path, const std::vector<FieldSelection>& found) {
  std::string message = "'" + std::string(path) + "' selects " + std::to_string(found.size()) + " parameters (";
  const size_t listed = std::min<size_t>(found.size(), 3);
  for (size_t i = 0; i < listed; ++i) message += (i ? ", " : "") + path_of(model, found[i]);
  usage_error(message + (listed < found.size() ? ", ..." : "") + "), expected one that a view can look at");
}

}  // namespace

ParameterView view(Model& model, std::string_view path) {
  const std::vector<FieldSelection> found = select_fields(model, path);
  if (found.size() != 1) several(model, path, found);
  const FieldSelection& selection = found.front();
  Parameter& parameter = selection.field->of(model);
  if (selection.item >= parameter.items()) {
    usage_error("'" + std::string(path) + "': the parameter holds " + std::to_string(parameter.items()) +
                " items, expected one for each name");
  }
  return {parameter, selection.item, selection.component, path_of(model, selection)};
}

}  // namespace backdrive
