// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"golang.org/x/net/html"
)

// loads are the attributes by which a page loads something when it is opened: element -> attribute.
var loads = map[string]string{"img": "src", "script": "src", "link": "href", "source": "src"}

// check returns the links of the pages to files or anchors that are not there, anchors that a page has twice, and what
// a page would load from another host.
func check(files map[string][]byte) []string {
	ids := map[string]map[string]bool{} // URL -> anchor -> exists
	var broken []string
	type link struct{ from, to string }
	var links []link
	for _, name := range sortedKeys(files) {
		if path.Ext(name) != ".html" {
			continue
		}
		ids[name] = map[string]bool{}
		for _, e := range elements(files[name]) {
			if id := e.attributes["id"]; id != "" {
				if ids[name][id] {
					broken = append(broken, fmt.Sprintf("%s: the anchor %s is there twice", name, id))
				}
				ids[name][id] = true
			}
			if to := e.attributes[loads[e.name]]; strings.Contains(to, "//") || strings.HasPrefix(to, "data:") {
				broken = append(broken, fmt.Sprintf("%s: loads %s", name, to))
			}
			for _, attribute := range []string{"href", "src"} {
				to := e.attributes[attribute]
				if to != "" && !strings.Contains(to, "://") && !strings.HasPrefix(to, "mailto:") {
					links = append(links, link{name, to})
				}
			}
		}
	}
	for _, l := range links {
		file, anchor, _ := strings.Cut(l.to, "#")
		target := l.from
		if file != "" {
			target = path.Join(path.Dir(l.from), file)
		}
		if _, ok := files[target]; !ok {
			broken = append(broken, fmt.Sprintf("%s: links to %s, which does not exist", l.from, l.to))
		} else if anchor != "" && path.Ext(target) == ".html" && !ids[target][anchor] {
			broken = append(broken, fmt.Sprintf("%s: links to %s, which has no such anchor", l.from, l.to))
		}
	}
	return broken
}

// element is a start tag.
type element struct {
	name       string
	attributes map[string]string // name -> value
}

// elements returns the start tags of a page.
func elements(page []byte) []element {
	var found []element
	z := html.NewTokenizer(bytes.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return found
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			e := element{t.Data, map[string]string{}}
			for _, a := range t.Attr {
				e.attributes[a.Key] = a.Val
			}
			found = append(found, e)
		}
	}
}
