#pragma once
// Reports in a real browser, asked what they show.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/apps/simctl_process.h"
#include "tests/support/sanitized.h"

namespace backdrive::test {

/// Run in the page after everything, fills in `verdict`: what is drawn at two times, where points of bodies are drawn,
/// and what the plot holds.
inline const char* const kReportQuestions = R"(
  const canvas = document.getElementById('scene'), page = window.backdrive, n = page.times.length;
  const pixels = () => {
    page.draw();
    const copy = document.createElement('canvas');
    copy.width = canvas.width, copy.height = canvas.height;
    const context = copy.getContext('2d');
    context.drawImage(canvas, 0, 0);
    return context.getImageData(0, 0, copy.width, copy.height).data;
  };
  page.show(0);
  const first = pixels();
  const kinds = new Set();
  for (let i = 0; i < first.length; i += 4) kinds.add(first[i] << 16 | first[i + 1] << 8 | first[i + 2]);
  verdict.colours = kinds.size;
  page.show(Math.floor(n / 2));
  const later = pixels();
  let moved = 0;
  for (let i = 0; i < first.length; i += 4) moved += first[i] !== later[i] || first[i + 1] !== later[i + 1];
  verdict.moved = moved;
  verdict.frame = page.frame(), verdict.time = page.times[page.frame()];
  verdict.slider = +document.getElementById('time').value, verdict.clock = document.getElementById('clock').textContent;
  // By hand: camera and target to pixels, of the origin of the last body.
  const b = page.data.bodies.length - 1, link = page.links[b].position, camera = page.camera;
  camera.updateMatrixWorld();
  const eye = camera.position, to = page.controls.target.clone().sub(eye).normalize();
  const right = to.clone().cross(camera.up).normalize(), up = right.clone().cross(to), d = link.clone().sub(eye);
  const focal = canvas.clientHeight / 2 / Math.tan(camera.fov * Math.PI / 360);
  const x = canvas.clientWidth / 2 + focal * d.dot(right) / d.dot(to), y = canvas.clientHeight / 2 - focal * d.dot(up) / d.dot(to);
  const drawn = page.project(b, [0, 0, 0]);
  verdict.off = Math.hypot(drawn[0] - x, drawn[1] - y);
  verdict.position = [link.x, link.y, link.z];
  const plot = window.backdrivePlot;
  verdict.plotted = plot.data.datasets.filter(s => s.label !== 'limit').map(s => [s.label, s.data.length, s.data[s.data.length - 1].y]);
  verdict.title = document.title, verdict.name = document.getElementById('name').textContent;
)";

/// What reports say of themselves in a real browser.
class ReportPageTest : public SimctlTest {
 protected:
  inline static const std::string kThree = "/usr/share/javascript/three/",
                                  kGltfLoader = "examples/js/loaders/GLTFLoader.js";
  /// Whether pages are opened: what a browser does with one that is written shows nothing to sanitizers.
  static bool has_browser() { return !kSanitized && has_chromium(); }

  static std::string replaced(std::string text, const std::string& what, const std::string& by) {
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    if (at != std::string::npos) text.replace(at, what.size(), by);
    return text;
  }

  /// A page and what it is asked.
  struct Question {
    std::string page;
    std::string script = kReportQuestions;
  };

  /// What pages say of themselves in a browser, which is started once and shows them one after the other.
  nlohmann::json verdicts(const std::vector<Question>& questions) const {
    std::string list;
    for (const Question& question : questions) {
      std::string text = read(question.page);
      text = replaced(
          text, "<header>",
          "<script>window.caught = []; addEventListener('error', e => window.caught.push(e.message)); "
          "const tell = console.error; console.error = (...a) => { window.caught.push(a.join(' ')); tell(...a); };"
          "document.addEventListener('securitypolicyviolation', e => "
          "window.caught.push(e.blockedURI));</script><header>");
      // After all else of the page, and after what it does once it is there.
      const std::string script =
          "<script>(async () => {\nawait window.backdriveWhole;\nconst verdict = {errors: window.caught, requests: "
          "performance.getEntriesByType('resource').length};\ntry {\n" +
          question.script +
          "\n} catch (error) { verdict.errors.push(String(error)); }\n"
          "parent.postMessage(JSON.stringify(verdict), '*');\n})();</script>";
      text = replaced(text, "</body>", script + "</body>");
      const std::string name = "asked" + std::to_string(&question - questions.data()) + ".html";
      write(name, text);
      list += "'" + name + "',";
    }
    write("asked.html", "<html><body><script>const pages = [" + list + R"(], verdicts = [];
const frame = document.createElement('iframe');
frame.style = 'width: 1280px; height: 900px';
document.body.appendChild(frame);
addEventListener('message', e => {
  verdicts.push(JSON.parse(e.data));
  if (verdicts.length < pages.length) { frame.src = pages[verdicts.length]; return; }
  frame.remove();
  const said = document.createElement('pre');
  said.id = 'verdict';
  said.textContent = JSON.stringify(verdicts);
  document.body.appendChild(said);
});
frame.src = pages[0];
</script></body></html>)");
    return answer();
  }
  nlohmann::json verdict(const std::string& page, const std::string& script = kReportQuestions) const {
    const nlohmann::json all = verdicts({{page, script}});
    return all.is_array() && all.size() == 1 ? all[0] : nlohmann::json();
  }

  static bool three_can_read() { return has_browser() && std::filesystem::exists(kThree + kGltfLoader); }
  /// What a script that has `gltf` tells (`tell(object)`) of a binary glTF as three's own reader takes it; "error":
  /// it does not.
  nlohmann::json read_by_three(const std::string& bytes, const std::string& script) const {
    std::string list;
    for (const char c : bytes) list += std::to_string(static_cast<unsigned char>(c)) + ",";
    write("asked.html", "<html><body><script>" + read(kThree + "three.min.js") + "</script><script>" +
                            read(kThree + kGltfLoader) + R"(</script><script>
const said = document.createElement('pre');
said.id = 'verdict';
const tell = what => { said.textContent = JSON.stringify(what); document.body.appendChild(said); };
new THREE.GLTFLoader().parse(new Uint8Array([)" +
                            list + "]).buffer, '', gltf => {" + script +
                            "}, error => tell({error: String(error)}));</script></body></html>");
    return answer();
  }

  /// Of asked.html.
  nlohmann::json answer() const {
    const std::string command = "cd " + path("").string() +
                                " && timeout 120 chromium --headless=new --no-sandbox --use-angle=swiftshader "
                                "--enable-unsafe-swiftshader --user-data-dir=" +
                                path("browser").string() +
                                " --window-size=1280,900 --virtual-time-budget=30000 --dump-dom file://" +
                                path("asked.html").string() + " >dom.html 2>browser.log";
    EXPECT_EQ(std::system(command.c_str()), 0) << read("browser.log");
    const std::string dom = read("dom.html");
    const std::string begin = "<pre id=\"verdict\">";
    const std::size_t at = dom.find(begin);
    if (at == std::string::npos) {
      ADD_FAILURE() << "no verdict: " << read("browser.log");
      return {};
    }
    std::string answer = dom.substr(at + begin.size(), dom.find("</pre>", at) - at - begin.size());
    for (const auto& [code, character] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}}) {
      for (std::size_t k; (k = answer.find(code)) != std::string::npos;)
        answer.replace(k, std::string(code).size(), character);
    }
    return nlohmann::json::parse(answer);
  }
};

}  // namespace backdrive::test
