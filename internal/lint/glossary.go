// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"unicode"
)

const glossaryPage = "docs/glossary.md"

// plainWords are words in the names of exported types of core that a reader who knows Kubernetes and Go understands.
var plainWords = wordSet(`
	a action admission affinity allocation amount annotation answer args backoff balanced bind binder binding bitmap bound
	budget cache candidate change claim code column condition config considered controller cost count counter counting
	counts deadline declaration declared default demand device difference domain enabled error event eviction explainer
	extended failing failure feature filter finder fit foreign freed gang gate group handler heap host id idx image index
	info input inter item iterator key kind label less limit list locality loss map mapping mark member migrated migrating
	migration mode mutation name need no node normal not notice object of opening option outcome owner path phase placement
	plan planned planner plugin pod point port preemption priority profile query question queue read readiness reason
	reader recent recorded reference registration rejection report request reservation reserve reserved reserver
	resource
	restored restriction result rows rule scheduler scheduling score scorer search seen selection selective selector
	self set shape sort source spec spread stat state statistic status strategy table tag target taint term time timer total
	allocate create decided delete done engine evict gone held moved nomination paused prepare release scalar select stuck
	cluster entry history inspector manager pause shortage shown waiting warning waste
	synced trouble whole type uid unit value verdict version victim view volume wait watch weighted write zone`)

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

// glossed returns the words that the glossary defines, in lower case.
func glossed(t *Tree) map[string]bool {
	defined := map[string]bool{}
	for _, f := range t.Files {
		if f.Path != glossaryPage {
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
				found = append(found, Finding{t.at(name), "the type " + name.Name + " has the word " + w + ", which " + glossaryPage + " does not define",
					"a reader looks up a word in the glossary first; add an entry in standard terms, or a word that needs none to internal/lint/glossary.go"})
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
