// Fixed tendons and equalities of joints, as couplings.
#include <algorithm>
#include <array>
#include <cmath>

#include "models/parameter_list.h"
#include "scenes/robots/mjcf_model.h"

namespace backdrive::scene {
namespace {

class MjcfCouplingReader : MjcfReading {
 public:
  MjcfCouplingReader(const MjcfReading& reading, MjcfModel& model) : MjcfReading(reading), model_(model) {}

  void read_tendons() {
    for (const XmlElement* const given : document_.section("tendon")) {
      const XmlAttribute* const name = given->attribute("name");
      if (!mistakes_.attempt([&] { read_tendon(*given); }) && name) model_.unread.insert(name->value);
    }
  }

  void write() {
    for (const MjcfTendon& tendon : model_.tendons) mistakes_.attempt([&] { write_tendon(tendon); });
    each_of_section("equality", [&](const XmlElement& one) {
      if (one.name == "joint" && values_.flag_or(one, "active", true)) write_equality(one);
    });
  }

 private:
  void read_tendon(const XmlElement& given) {
    XmlElement element = document_.with_defaults(given, "tendon", "");
    if (given.name != "fixed") {
      if (acts(element)) parts_.note(given.place, "<tendon> <" + excerpt(given.name) + ">: it pulls nothing");
      return;
    }
    MjcfTendon tendon;
    tendon.element = element;
    tendon.element.name = given.name;
    Parts terms(mistakes_);
    for (const XmlElement& term : given.children) {
      terms.read([&] {
        if (term.name != "joint") values_.missing(given, "elements <joint joint=... coef=...> and no other");
        add_term(term, values_.number(term, values_.attribute(term, "coef", "of the joint's position")), tendon);
      });
    }
    terms.need_all();
    if (tendon.terms.empty()) values_.missing(given, "an element <joint joint=... coef=...>");
    const XmlAttribute* const name = given.attribute("name");
    if (name) model_.tendon_of_name.emplace(name->value, static_cast<int>(model_.tendons.size()));
    tendon.name = unique(model_.joint_names, name && !name->value.empty() ? name->value : "tendon");
    model_.tendons.push_back(std::move(tendon));
  }

  /// Whether anything of a tendon moves what it is tied to.
  static bool acts(const XmlElement& tendon) {
    return std::ranges::any_of(std::array{"stiffness", "damping", "range", "frictionloss", "armature"},
                               [&](const char* name) { return tendon.attribute(name) != nullptr; });
  }

  const MjcfJoint& joint_of(const XmlElement& element, const char* key) const {
    const XmlAttribute& name = values_.attribute(element, key, "the name of a joint");
    const auto found = model_.joint_of_name.find(name.value);
    if (found == model_.joint_of_name.end()) {
      refuse_name(element, name, "the name of a joint", names_of(model_.joint_of_name), model_);
    }
    const MjcfJoint& joint = model_.joints[found->second];
    if (!joint.has_one_degree()) values_.refuse(element, name, "a hinge or a slide");
    return joint;
  }

  void add_term(const XmlElement& term, double ratio, MjcfTendon& tendon) const {
    const MjcfJoint& joint = joint_of(term, "joint");
    const double spring_reference = values_.number_or(joint.element, "springref", 0);
    tendon.offset += ratio * joint.reference;
    tendon.spring_length += ratio * (joint.type == "revolute" ? document_.angle(spring_reference) : spring_reference);
    for (MjcfTendon::Term& known : tendon.terms) {
      if (known.joint == joint.name) return void(known.ratio += ratio);
    }
    tendon.terms.push_back({joint.name, ratio, term.place});
  }

  static NodePtr node_of(const MjcfTendon& tendon, Place place) {
    NodePtr node = make_map(place), ratios = make_map(place);
    for (const MjcfTendon::Term& term : tendon.terms)
      set_key(ratios, term.joint, scalar_of(term.ratio, term.place), term.place);
    set_key(node, "ratios", ratios, place);
    if (cleaned(tendon.offset) != 0) set_key(node, "offset", scalar_of(tendon.offset, place), place);
    return node;
  }

  void write_tendon(const MjcfTendon& tendon) {
    const XmlElement& element = tendon.element;
    if (!acts(element) && !tendon.has_drive) return;
    static const Names known{"name",      "class",    "group",        "limited",      "range",
                             "stiffness", "damping",  "springlength", "frictionloss", "armature",
                             "width",     "material", "rgba",         "user",         "actuatorfrclimited"};
    tell_rest(element, known);
    NodePtr node = node_of(tendon, element.place);
    add_losses(element, node);
    mistakes_.attempt([&] {
      if (const double stiffness = linear_part(element, "stiffness"); stiffness > 0) {
        add_spring(stiffness, rest_of(tendon), element.attribute("stiffness")->place, node);
      }
    });
    mistakes_.attempt([&] {
      if (!is_limited(element, "range", "limited")) return;
      const XmlAttribute* const range = element.attribute("range");
      if (!range) values_.missing(element, "the attribute 'range', as it is limited");
      const auto ends = values_.numbers<2>(element, *range);
      if (!(ends[0] < ends[1])) values_.refuse(element, *range, "a lower end below the upper one");
      add_limit(ends, range->place, node);
    });
    add_drive(tendon, tendon.name, node);
    set_key(parts_.couplings, tendon.name, node, element.place);
  }

  /// Where a tendon's spring pulls to.
  double rest_of(const MjcfTendon& tendon) {
    const XmlAttribute* const given = tendon.element.attribute("springlength");
    if (!given) return tendon.spring_length;
    const std::vector<double> lengths = values_.list(tendon.element, *given, 1, 2);
    if (lengths.size() > 1 && lengths[1] != lengths[0]) {
      parts_.note(given->place, "<fixed springlength=...> with a range: its lower end is taken");
    }
    return lengths[0] == -1 ? tendon.spring_length : lengths[0];
  }

  /// joint1 − ref1 = c0 + c1 (joint2 − ref2): our positions are counted from the references.
  void write_equality(const XmlElement& given) {
    const XmlElement element = document_.with_defaults(given, "equality", "");
    std::vector<double> polynomial{0, 1, 0, 0, 0};
    if (const XmlAttribute* const given_numbers = element.attribute("polycoef")) {
      const std::vector<double> values = values_.list(element, *given_numbers, 1, 5);
      std::ranges::copy(values, polynomial.begin());
      if (std::ranges::any_of(polynomial.begin() + 2, polynomial.end(), [](double x) { return x != 0; })) {
        return parts_.note(given_numbers->place,
                           "<equality> <joint polycoef=...> of a degree above 1: it holds nothing");
      }
    }
    static const Names known{"name", "class", "active", "joint1", "joint2", "polycoef", "solref", "solimp"};
    tell_rest(element, known);
    MjcfTendon held;
    const bool has_first = mistakes_.attempt([&] {
      held.terms.push_back({joint_of(element, "joint1").name, 1, given.place});
    });
    if (!has_first && element.attribute("joint2")) joint_of(element, "joint2");
    if (!has_first) Mistakes::leave_off();
    if (element.attribute("joint2")) {
      const std::string& other = joint_of(element, "joint2").name;
      if (other == held.terms[0].joint) values_.refuse(element, *element.attribute("joint2"), "another joint");
      held.terms.push_back({other, cleaned(-polynomial[1]), given.place});
    }
    held.offset = cleaned(-polynomial[0]);
    NodePtr node = node_of(held, given.place);
    set_key(node, "hold", make_scalar("true", given.place), given.place);
    const XmlAttribute* const name = given.attribute("name");
    const std::string own =
        name && !name->value.empty() ? name->value : held.terms[0].joint.substr(request_.prefix.size()) + "_equality";
    set_key(parts_.couplings, unique(model_.joint_names, own), node, given.place);
  }

  MjcfModel& model_;
};

}  // namespace

void read_mjcf_tendons(const MjcfReading& reading, MjcfModel& model) {
  MjcfCouplingReader(reading, model).read_tendons();
}

void write_mjcf_couplings(const MjcfReading& reading, MjcfModel& model) {
  MjcfCouplingReader(reading, model).write();
}

}  // namespace backdrive::scene
