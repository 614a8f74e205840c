// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	sumsFile   = "SHA256SUMS"
	signature  = "SHA256SUMS.sig"
	statement  = "provenance.intoto.json"
	envelope   = "provenance.intoto.jsonl"
	krewFile   = "kumiki.yaml" // krew wants the name of the plugin
	notesFile  = "RELEASE_NOTES.md"
	sigstore   = "SHA256SUMS.sigstore.json" // of cosign, in CI
	hexOfASum  = 2 * sha256.Size
	afterASum  = "  " // as sha256sum writes and reads it
	chartFiles = "kumiki-chart"
)

// unsummed are the files that SHA256SUMS cannot contain: itself and what is made from it.
var unsummed = []string{sumsFile, signature, envelope, sigstore}

// sumOf returns the SHA-256 sum of a file, in hexadecimal digits.
func sumOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sums returns file -> sum of all files that SHA256SUMS contains.
func sums(dir string) (map[string]string, error) {
	names, err := files(dir)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, name := range names {
		if slices.Contains(unsummed, name) {
			continue
		}
		if all[name], err = sumOf(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// writeSums writes SHA256SUMS, in the form of sha256sum, sorted by name.
func writeSums(dir string) error {
	all, err := sums(dir)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, name := range sortedKeys(all) {
		fmt.Fprintf(&text, "%s%s%s\n", all[name], afterASum, name)
	}
	return os.WriteFile(filepath.Join(dir, sumsFile), text.Bytes(), 0o644)
}

// readSums reads SHA256SUMS.
func readSums(dir string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), afterASum)
		if !ok || len(sum) != hexOfASum || name == "" || name != filepath.Base(name) || all[name] != "" {
			return nil, fmt.Errorf("%s has the line %q", sumsFile, line)
		}
		all[name] = sum
	}
	return all, nil
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
