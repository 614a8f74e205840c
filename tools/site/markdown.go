// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	renderhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

func escape(s string) string { return html.EscapeString(s) }

// markdown allows HTML in pages: anchors, and images with a size. The pages are the repository's own.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(renderhtml.WithUnsafe()))

// makeMarkdown writes the body, the contents and the texts for the search of a Markdown page.
func (s *site) makeMarkdown(p *page, src []byte) error {
	names := parser.NewContext(parser.WithIDs(anchors{}))
	doc := markdown.Parser().Parse(text.NewReader(src), parser.WithContext(names))
	if err := s.rewriteLinks(p, doc); err != nil {
		return err
	}
	p.title = p.path
	part := part{}
	flush := func() {
		if part.text != "" || part.title != "" {
			p.parts = append(p.parts, part)
		}
	}
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		h, isHeading := n.(*ast.Heading)
		if !isHeading {
			part.text = strings.TrimSpace(part.text + " " + textOf(n, src))
			continue
		}
		title := textOf(h, src)
		if h.Level == 1 {
			p.title = title
		}
		id, _ := h.AttributeString("id")
		anchor := string(id.([]byte))
		if h.Level > 1 {
			p.toc = append(p.toc, heading{h.Level, anchor, title})
		}
		flush()
		part.anchor, part.title, part.text = anchor, title, ""
	}
	flush()
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, src, doc); err != nil {
		return err
	}
	p.body = finish(b.Bytes())
	return nil
}

// rewriteLinks points the links and images of a page to where their targets are in the site.
func (s *site) rewriteLinks(p *page, doc ast.Node) error {
	return ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var to *[]byte
		switch n := n.(type) {
		case *ast.Link:
			to = &n.Destination
		case *ast.Image:
			to = &n.Destination
		default:
			return ast.WalkContinue, nil
		}
		url, err := s.target(p, string(*to))
		*to = []byte(url)
		return ast.WalkContinue, err
	})
}

// finish makes what may be wider than a telephone scroll by itself, with the keyboard too.
func finish(body []byte) []byte {
	return []byte(strings.NewReplacer(
		"<table>", `<div class="scroll" tabindex="0" role="region" aria-label="table"><table>`,
		"</table>", "</table></div>",
		"<pre>", `<pre tabindex="0">`,
	).Replace(string(body)))
}

// anchors names headings as GitHub and internal/lint do: key -> taken.
type anchors map[string]bool

// Generate returns the anchor of a heading.
func (a anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	anchor := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.TrimSpace(string(value)))
	name := anchor
	for n := 1; a[name]; n++ {
		name = fmt.Sprintf("%s-%d", anchor, n)
	}
	a[name] = true
	return []byte(name)
}

// Put takes an anchor that a page sets itself.
func (a anchors) Put(value []byte) { a[string(value)] = true }
