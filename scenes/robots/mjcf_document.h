#pragma once
// The text of a MuJoCo model (MJCF) with included files in their places and the values of its default classes at hand.
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenes/robots/robot_files.h"
#include "scenes/robots/xml_values.h"

namespace backdrive::scene {

/// What <compiler> says, with MuJoCo's own values where it says nothing.
struct MjcfCompiler {
  enum class Inertia { given, from_geoms, automatic };

  bool degrees = true;
  std::string euler_sequence = "xyz";  ///< lower case: about axes that turn along, upper case: about fixed ones
  bool automatic_limits = true;
  std::filesystem::path mesh_folder;
  bool strip_paths = false;
  Inertia inertia = Inertia::automatic;
  int first_group = 0, last_group = 5;  ///< of geoms that give bodies mass
  double least_mass = 0, least_inertia = 0;
  bool balance_inertia = false;
  double total_mass = -1;  ///< kg; not positive: as it is
};

class MjcfDocument {
 public:
  /// Reads the file that an <include> names and parses it.
  using Include = std::function<XmlElement(const XmlElement& include, const XmlAttribute& file)>;

  /// Adds what is wrong and goes on behind it: files that include themselves or cannot be read, classes that are there
  /// twice, values that nothing can have. Throws Error (input): too many elements, or levels of them.
  MjcfDocument(const XmlElement& root, const Sources& sources, const Include& include, Mistakes& mistakes);

  /// Whether a file could not be included, in which names may be.
  bool lacks_files() const { return lacks_files_; }

  const MjcfCompiler& compiler() const { return compiler_; }
  const XmlElement& root() const { return root_; }
  /// What is in the sections of that name, in the order of the text.
  std::vector<const XmlElement*> section(std::string_view name) const;

  /// The element without what is in it, with the attributes that its class, or else `child_class`, gives to elements
  /// of the kind where it has none itself. Of actuators, the attribute "shortcut" is the kind of actuator that the
  /// class was written for.
  XmlElement with_defaults(const XmlElement& element, std::string_view kind, const std::string& child_class) const;

  /// Angle in rad.
  double angle(double value) const { return compiler_.degrees ? value * (M_PI / 180) : value; }
  /// By `quat`, `axisangle`, `euler`, `xyaxes` or `zaxis`; no turn where there is none of these.
  Turn orientation(const XmlElement& element) const;
  /// With `pos`.
  Pose pose(const XmlElement& element) const;

 private:
  /// Attributes by kind of element, those of the classes above included.
  using Class = std::map<std::string, std::vector<XmlAttribute>, std::less<>>;

  XmlElement expanded(const XmlElement& element, const Include& include, int depth);
  void include_file(const XmlElement& child, const Include& include, int depth, XmlElement& into);
  void read_compiler(const XmlElement& element);
  void read_class(const XmlElement& element, const std::string& name, const Class& above);

  XmlValues values_;
  const Sources& sources_;
  Mistakes& mistakes_;
  bool lacks_files_ = false;
  bool is_too_large_ = false;
  XmlElement root_;
  MjcfCompiler compiler_;
  std::map<std::string, Class, std::less<>> classes_;
  std::vector<std::string> including_;  ///< files, from the first to the one that is being read
  std::size_t elements_ = 0;            ///< read
  std::size_t inherited_ = 0;           ///< attributes of all classes
};

/// The least turn that brings z to a direction (not zero).
Turn turn_from_z(const Numbers3& direction);

}  // namespace backdrive::scene
