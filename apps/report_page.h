#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace backdrive::app {

/// The page of a report: one HTML text that needs no other file, apps/report/page.html filled with styles, three.js,
/// Chart.js, the page's scripts and `data` (report_data). Nothing in the data can end the element that holds it.
std::string report_page(const nlohmann::json& data);

class WebServer;
struct Looks;
/// Gives a server the viewer's page and what it loads: apps/report/view.html with the replay of page.html, scripts and
/// styles as files of their own, and how the robots look. Its script reads what else there is from the server.
void put_view_page(WebServer& server, const Looks& looks);

}  // namespace backdrive::app
