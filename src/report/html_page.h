/* html_page.h - the page as built in: report.html with style and scripts, "@title@", "@refresh@" and "@data@" left to be
 * filled in (cmake/Page.cmake). */
#ifndef TG_REPORT_HTML_PAGE_H
#define TG_REPORT_HTML_PAGE_H

#include <stddef.h>

extern const unsigned char tg_html_page[];
extern const size_t tg_html_page_bytes;

#endif
