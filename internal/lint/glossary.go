// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"unicode"
)

const (
	glossaryPage     = "docs/glossary.md"
	glossaryCodePage = "docs/glossary-code.md"
)

// plainWords are words in the names of exported types of core that a reader who knows Kubernetes and Go understands.
var plainWords = wordSet(`
	a ack action admission affinity after allocate allocation amount annotation answer args backoff balanced bind
	binder binding bitmap bound budget cache candidate change charge check choice claim cluster code column
	condition config considered controller cost count counter counting counts create deadline decided declaration
	declared default deferred delete demand device difference domain done empty enabled engine entry epoch error
	event evict eviction explainer extended failing failure feature filter finder fit foreign freed gang gate gone
	group handler heap held history host id idx if image index info input inspector inter item iterator key kind
	label less limit list locality log loss manager map mapping mark member migrated migrating migration mode moved
	mutation name need no node nomination normal not notice object of opening option ordinal outcome owner partial
	path pause paused pending phase placement plan planned planner plugin pod point policy port position preemption
	prepare priority profile query question queue read reader readiness reason recent recorded reference
	registration rejection release report request reservation reserve reserved reserver resource restored
	restriction result rows rule scalar scale scheduler scheduling score scorer search seen select selection
	selective selector self sequence session set shape shortage shown sort source spec spent spread stat state
	statistic status strategy stuck synced table tag taint target term terminating time timer total trouble type uid
	uncached unit value verdict version victim view volume wait waiting warning waste watch weight weighted what
	whole write zone`)

func wordSet(list string) map[string]bool {
	set := map[string]bool{} // word -> needs no entry
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

var (
	glossaryEntry = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	letters       = regexp.MustCompile(`[a-z]+`)
)

// glossed returns the words that the pages of the glossary define, in lower case.
func glossed(t *Tree) map[string]bool {
	defined := map[string]bool{}
	for _, f := range t.Files {
		if f.Path != glossaryPage && f.Path != glossaryCodePage {
			continue
		}
		for _, m := range glossaryEntry.FindAllStringSubmatch(f.Src, -1) {
			for _, w := range letters.FindAllString(strings.ToLower(m[1]), -1) {
				defined[w] = true
			}
		}
	}
	return defined
}

// unexplainedTypes returns exported types of core of whose names a word is neither plain nor in the glossary.
func unexplainedTypes(t *Tree, f *File) []Finding {
	if !f.In("core") {
		return nil
	}
	defined := glossed(t)
	var found []Finding
	for _, d := range f.AST.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, s := range gen.Specs {
			name := s.(*ast.TypeSpec).Name
			for _, w := range camelWords(name.Name) {
				if !ast.IsExported(name.Name) || explained(plainWords, w) || explained(defined, w) {
					continue
				}
				found = append(found, Finding{t.at(name), "the type " + name.Name + " has the word " + w + ", which " + glossaryCodePage + " does not define",
					"a reader looks up a word in the glossary first; add an entry in standard terms there, or a word that needs none to internal/lint/glossary.go"})
			}
		}
	}
	return found
}

// explained reports whether a word, or its singular, is in a set.
func explained(set map[string]bool, word string) bool {
	return set[word] || set[strings.TrimSuffix(word, "s")]
}

// camelWords splits a name at its capitals, in lower case. Consecutive capitals are one word, with a plural s.
func camelWords(name string) []string {
	var words []string
	runes := []rune(name)
	start := 0
	for i := 1; i <= len(runes); i++ {
		if i == len(runes) || unicode.IsUpper(runes[i]) && (!unicode.IsUpper(runes[i-1]) || beginsWord(runes[i+1:])) {
			words = append(words, strings.ToLower(string(runes[start:i])))
			start = i
		}
	}
	return words
}

// beginsWord reports whether a capital before rest begins a word: a small letter follows that is no plural s.
func beginsWord(rest []rune) bool {
	plural := len(rest) > 0 && rest[0] == 's' && (len(rest) == 1 || unicode.IsUpper(rest[1]))
	return len(rest) > 0 && unicode.IsLower(rest[0]) && !plural
}
