#include "CPage.h"

/* The page's files as they lie in Sources/LocalAPI/Page: #embed of C23, which clang has in every C since 19. */
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char index_html[] = {
#embed "../LocalAPI/Page/index.html"
};
static const unsigned char page_css[] = {
#embed "../LocalAPI/Page/page.css"
};
static const unsigned char icon_svg[] = {
#embed "../LocalAPI/Page/icon.svg"
};
static const unsigned char main_js[] = {
#embed "../LocalAPI/Page/main.js"
};
static const unsigned char api_js[] = {
#embed "../LocalAPI/Page/api.js"
};
static const unsigned char icons_js[] = {
#embed "../LocalAPI/Page/icons.js"
};
static const unsigned char verify_js[] = {
#embed "../LocalAPI/Page/verify.js"
};
static const unsigned char store_js[] = {
#embed "../LocalAPI/Page/store.js"
};
static const unsigned char dom_js[] = {
#embed "../LocalAPI/Page/dom.js"
};
static const unsigned char texts_js[] = {
#embed "../LocalAPI/Page/texts.js"
};
static const unsigned char text_en_js[] = {
#embed "../LocalAPI/Page/text-en.js"
};
static const unsigned char text_de_js[] = {
#embed "../LocalAPI/Page/text-de.js"
};
static const unsigned char text_zh_js[] = {
#embed "../LocalAPI/Page/text-zh.js"
};
static const unsigned char timeline_js[] = {
#embed "../LocalAPI/Page/timeline.js"
};
static const unsigned char message_js[] = {
#embed "../LocalAPI/Page/message.js"
};
static const unsigned char composer_js[] = {
#embed "../LocalAPI/Page/composer.js"
};
static const unsigned char people_js[] = {
#embed "../LocalAPI/Page/people.js"
};
static const unsigned char files_js[] = {
#embed "../LocalAPI/Page/files.js"
};
static const unsigned char join_js[] = {
#embed "../LocalAPI/Page/join.js"
};
static const unsigned char pictures_js[] = {
#embed "../LocalAPI/Page/pictures.js"
};
static const unsigned char search_js[] = {
#embed "../LocalAPI/Page/search.js"
};
static const unsigned char openapi_json[] = {
#embed "../LocalAPI/Page/openapi.json"
};
static const unsigned char stream_js[] = {
#embed "../LocalAPI/Page/stream.js"
};
static const unsigned char channels_js[] = {
#embed "../LocalAPI/Page/channels.js"
};
static const unsigned char person_js[] = {
#embed "../LocalAPI/Page/person.js"
};
static const unsigned char doctor_js[] = {
#embed "../LocalAPI/Page/doctor.js"
};
static const unsigned char kinds_js[] = {
#embed "../LocalAPI/Page/kinds.js"
};
static const unsigned char deeds_js[] = {
#embed "../LocalAPI/Page/deeds.js"
};

static const struct parley_page_file files[] = {
    {"index.html", "text/html; charset=utf-8", index_html, sizeof index_html},
    {"page.css", "text/css; charset=utf-8", page_css, sizeof page_css},
    {"icon.svg", "image/svg+xml", icon_svg, sizeof icon_svg},
    {"main.js", "text/javascript; charset=utf-8", main_js, sizeof main_js},
    {"api.js", "text/javascript; charset=utf-8", api_js, sizeof api_js},
    {"icons.js", "text/javascript; charset=utf-8", icons_js, sizeof icons_js},
    {"verify.js", "text/javascript; charset=utf-8", verify_js, sizeof verify_js},
    {"store.js", "text/javascript; charset=utf-8", store_js, sizeof store_js},
    {"dom.js", "text/javascript; charset=utf-8", dom_js, sizeof dom_js},
    {"texts.js", "text/javascript; charset=utf-8", texts_js, sizeof texts_js},
    {"text-en.js", "text/javascript; charset=utf-8", text_en_js, sizeof text_en_js},
    {"text-de.js", "text/javascript; charset=utf-8", text_de_js, sizeof text_de_js},
    {"text-zh.js", "text/javascript; charset=utf-8", text_zh_js, sizeof text_zh_js},
    {"timeline.js", "text/javascript; charset=utf-8", timeline_js, sizeof timeline_js},
    {"message.js", "text/javascript; charset=utf-8", message_js, sizeof message_js},
    {"composer.js", "text/javascript; charset=utf-8", composer_js, sizeof composer_js},
    {"people.js", "text/javascript; charset=utf-8", people_js, sizeof people_js},
    {"files.js", "text/javascript; charset=utf-8", files_js, sizeof files_js},
    {"join.js", "text/javascript; charset=utf-8", join_js, sizeof join_js},
    {"pictures.js", "text/javascript; charset=utf-8", pictures_js, sizeof pictures_js},
    {"search.js", "text/javascript; charset=utf-8", search_js, sizeof search_js},
    {"openapi.json", "application/json", openapi_json, sizeof openapi_json},
    {"stream.js", "text/javascript; charset=utf-8", stream_js, sizeof stream_js},
    {"channels.js", "text/javascript; charset=utf-8", channels_js, sizeof channels_js},
    {"person.js", "text/javascript; charset=utf-8", person_js, sizeof person_js},
    {"doctor.js", "text/javascript; charset=utf-8", doctor_js, sizeof doctor_js},
    {"kinds.js", "text/javascript; charset=utf-8", kinds_js, sizeof kinds_js},
    {"deeds.js", "text/javascript; charset=utf-8", deeds_js, sizeof deeds_js},
};

const struct parley_page_file *parley_page_file_at(size_t index) {
  return index < sizeof files / sizeof files[0] ? &files[index] : NULL;
}
