// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
)

const (
	home  = "README.md"
	index = "docs/README.md"
)

// page is one file or directory of the repository that the site shows.
type page struct {
	path  string // in the repository
	url   string // in the site
	title string
	body  []byte // HTML
	toc   []heading
	parts []part // of Markdown pages, for the search
}

// heading is an entry of the contents of a page.
type heading struct {
	Level        int
	Anchor, Text string
}

// part is the text below one heading.
type part struct{ anchor, title, text string }

// site collects pages by following links.
type site struct {
	repo  fs.FS
	pages map[string]*page  // path in the repository -> page
	raw   map[string][]byte // URL -> file that is copied
	queue []string          // paths whose pages are not made yet
	order []*page           // in the order in which they were found
}

// build returns the files of the site: URL -> content.
func build(repo fs.FS) (map[string][]byte, error) {
	s := &site{repo: repo, pages: map[string]*page{}, raw: map[string][]byte{}}
	for _, start := range []string{home, index} {
		if _, err := s.url(start); err != nil {
			return nil, err
		}
	}
	for len(s.queue) > 0 {
		next := s.queue[0]
		s.queue = s.queue[1:]
		if err := s.make(s.pages[next]); err != nil {
			return nil, fmt.Errorf("%s: %w", next, err)
		}
	}
	nav, err := s.navigation()
	if err != nil {
		return nil, err
	}
	files := s.raw
	for name, content := range assets() { // order: each sets its own key
		files[name] = content
	}
	files["search.js"] = s.searchIndex()
	for _, p := range s.order {
		var b bytes.Buffer
		if err := layout.Execute(&b, s.view(p, nav)); err != nil {
			return nil, fmt.Errorf("%s: %w", p.path, err)
		}
		files[p.url] = b.Bytes()
	}
	return files, nil
}

// url returns the address of a path of the repository in the site, and queues the page if it is new.
func (s *site) url(name string) (string, error) {
	info, err := fs.Stat(s.repo, name)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		if _, err := fs.Stat(s.repo, path.Join(name, "README.md")); err == nil {
			name = path.Join(name, "README.md")
		}
	}
	if p := s.pages[name]; p != nil {
		return p.url, nil
	}
	url := name + ".html"
	switch ext := path.Ext(name); {
	case path.Base(name) == "README.md":
		url = path.Join(path.Dir(name), "index.html")
	case ext == ".md":
		url = strings.TrimSuffix(name, ext) + ".html"
	case info.IsDir():
		url = path.Join(name, "index.html")
	case ext == ".svg" || ext == ".png" || ext == ".cast":
		if s.raw[name], err = fs.ReadFile(s.repo, name); err != nil {
			return "", err
		}
		return name, nil
	}
	p := &page{path: name, url: url}
	s.pages[name] = p
	s.order = append(s.order, p)
	s.queue = append(s.queue, name)
	return url, nil
}

// make writes the body of a page.
func (s *site) make(p *page) error {
	info, err := fs.Stat(s.repo, p.path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return s.makeListing(p)
	}
	src, err := fs.ReadFile(s.repo, p.path)
	if err != nil {
		return err
	}
	if path.Ext(p.path) == ".md" {
		return s.makeMarkdown(p, src)
	}
	if bytes.ContainsRune(src, 0) {
		return fmt.Errorf("is neither text nor an image")
	}
	p.title = p.path
	p.body = fmt.Appendf(nil, "<h1>%s</h1>\n<pre tabindex=\"0\"><code>%s</code></pre>\n",
		escape(p.path), escape(string(src)))
	return nil
}

// makeListing writes a list of the files of a directory. Its directories are named and not linked: what the documents
// do not link to does not belong to the site.
func (s *site) makeListing(p *page) error {
	entries, err := fs.ReadDir(s.repo, p.path)
	if err != nil {
		return err
	}
	p.title = p.path + "/"
	var b strings.Builder
	fmt.Fprintf(&b, "<h1>%s</h1>\n<ul>\n", escape(p.title))
	for _, e := range entries {
		if e.IsDir() {
			fmt.Fprintf(&b, "<li>%s/</li>\n", escape(e.Name()))
			continue
		}
		url, err := s.url(path.Join(p.path, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "<li><a href=\"%s\">%s</a></li>\n", relative(p.url, url), escape(e.Name()))
	}
	b.WriteString("</ul>\n")
	p.body = []byte(b.String())
	return nil
}

// target returns where a link of a page leads in the site. Links to other hosts stay.
func (s *site) target(p *page, link string) (string, error) {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") || strings.HasPrefix(link, "#") {
		return link, nil
	}
	file, anchor, hasAnchor := strings.Cut(link, "#")
	url, err := s.url(path.Join(path.Dir(p.path), file))
	if err != nil {
		return "", fmt.Errorf("links to %s: %w", link, err)
	}
	to := relative(p.url, url)
	if hasAnchor {
		to += "#" + anchor
	}
	return to, nil
}

// textOf returns the text below a node, with a space between blocks.
func textOf(n ast.Node, src []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(src))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if entering {
				for i := range n.Lines().Len() {
					line := n.Lines().At(i)
					b.Write(line.Value(src))
				}
			}
		}
		if !entering && n.Type() == ast.TypeBlock {
			b.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}
