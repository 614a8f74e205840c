// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"io/fs"
)

//go:embed assets
var assetFiles embed.FS

var layout = template.Must(template.ParseFS(assetFiles, "assets/layout.html"))

// assets returns what every page loads: URL -> content.
func assets() map[string][]byte {
	files := map[string][]byte{} // URL -> content
	for _, name := range []string{"site.css", "site.js"} {
		content, err := assetFiles.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // they are compiled in
		}
		files[name] = content
	}
	return files
}

// section is a heading of the index with the pages that it lists.
type section struct {
	title string
	pages []*page
}

// navigation reads the index: each heading with the pages that its tables link to, in their order.
func (s *site) navigation() ([]section, error) {
	src, err := fs.ReadFile(s.repo, index)
	if err != nil {
		return nil, err
	}
	doc := markdown.Parser().Parse(text.NewReader(src))
	sections := []section{{title: "Start", pages: []*page{s.pages[home], s.pages[index]}}}
	seen := map[*page]bool{s.pages[home]: true, s.pages[index]: true}
	err = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 2 {
				sections = append(sections, section{title: textOf(n, src)})
			}
		case *ast.Link:
			file, _, _ := strings.Cut(string(n.Destination), "#")
			name := path.Join(path.Dir(index), file)
			p := s.pages[name]
			if p == nil {
				p = s.pages[path.Join(name, "README.md")]
			}
			if p == nil || seen[p] || !inTable(n) {
				break
			}
			seen[p] = true
			last := &sections[len(sections)-1]
			last.pages = append(last.pages, p)
		}
		return ast.WalkContinue, nil
	})
	return sections, err
}

func inTable(n ast.Node) bool {
	for ; n != nil; n = n.Parent() {
		if n.Kind() == extast.KindTableCell {
			return true
		}
	}
	return false
}

// view is what the layout shows of a page.
type view struct {
	Title, Source, Root string
	Body                template.HTML
	Contents            []heading
	Nav                 []navSection
	Previous, Next      *navLink
	Version             string
}

type navSection struct {
	Title string
	Open  bool
	Links []navLink
}

type navLink struct {
	Title, URL string
	Here       bool
}

// view returns the page with its place in the navigation.
func (s *site) view(p *page, sections []section) view {
	root := strings.TrimSuffix(relative(p.url, "x"), "x")
	v := view{Title: p.title, Source: p.path, Root: root, Body: template.HTML(p.body)} //nolint:gosec // made here
	for _, h := range p.toc {
		if h.Level <= 3 {
			v.Contents = append(v.Contents, h)
		}
	}
	var all []navLink
	here := -1
	for _, sec := range sections {
		n := navSection{Title: sec.title}
		for _, q := range sec.pages {
			link := navLink{Title: q.title, URL: relative(p.url, q.url), Here: q == p}
			if q == p {
				n.Open, here = true, len(all)
			}
			all = append(all, link)
			n.Links = append(n.Links, link)
		}
		v.Nav = append(v.Nav, n)
	}
	if here < 0 && len(v.Nav) > 0 {
		v.Nav[0].Open = true
	}
	if here > 0 {
		v.Previous = &all[here-1]
	}
	if here >= 0 && here+1 < len(all) {
		v.Next = &all[here+1]
	}
	return v
}

// searchIndex returns a script that sets the index: for each page its address and title, and for each heading of it
// anchor, title and text. A script, because a page that is opened from a file may not read other files.
func (s *site) searchIndex() []byte {
	type entry struct {
		URL   string      `json:"u"`
		Title string      `json:"t"`
		Parts [][3]string `json:"p"`
	}
	var entries []entry
	for _, p := range s.order {
		e := entry{URL: p.url, Title: p.title}
		for _, part := range p.parts {
			e.Parts = append(e.Parts, [3]string{part.anchor, part.title, part.text})
		}
		if len(e.Parts) > 0 {
			entries = append(entries, e)
		}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	if err := encoder.Encode(entries); err != nil {
		panic(err) // strings only
	}
	return fmt.Appendf(nil, "window.kumikiSearch = %s;\n", bytes.TrimSpace(b.Bytes()))
}
