// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// The parts of an in-toto statement v1 with the predicate SLSA provenance v1 that are used
// (slsa.dev/spec/v1.0/provenance).
type (
	inTotoStatement struct {
		Type          string        `json:"_type"`
		Subject       []inTotoThing `json:"subject"`
		PredicateType string        `json:"predicateType"`
		Predicate     slsaPredicate `json:"predicate"`
	}
	inTotoThing struct {
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
		Digest map[string]string `json:"digest,omitempty"`
	}
	slsaPredicate struct {
		BuildDefinition slsaDefinition `json:"buildDefinition"`
		RunDetails      slsaRun        `json:"runDetails"`
	}
	slsaDefinition struct {
		BuildType  string         `json:"buildType"`
		Parameters map[string]any `json:"externalParameters"`
		Internal   map[string]any `json:"internalParameters"`
		Resolved   []inTotoThing  `json:"resolvedDependencies,omitempty"`
	}
	slsaRun struct {
		Builder slsaBuilder `json:"builder"`
	}
	slsaBuilder struct {
		ID string `json:"id"`
	}
)

const (
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slsa.dev/provenance/v1"
	// buildType names this program; its externalParameters are its flags.
	buildType = "pkg:golang/github.com/kumiki-scheduler/kumiki/tools/release"
	// unidentified is the builder of a release that was built without --builder.
	unidentified = "pkg:generic/unidentified-builder"
)

// writeProvenance writes how the release was built and the sums of what came of it. It has no times, so that a second
// build gives the same statement.
func (r *release) writeProvenance() error {
	all, err := sums(r.out)
	if err != nil {
		return err
	}
	s := inTotoStatement{Type: statementType, PredicateType: predicateType}
	for _, name := range sortedKeys(all) {
		s.Subject = append(s.Subject, inTotoThing{Name: name, Digest: map[string]string{"sha256": all[name]}})
	}
	d := &s.Predicate.BuildDefinition
	d.BuildType = buildType
	d.Parameters = map[string]any{"version": r.version, "platforms": r.platforms, "repository": r.repository,
		"url": r.url}
	d.Internal = map[string]any{"go": runtime.Version(), "environment": fixedEnv}
	if r.revision != "" {
		source := r.sourceURL
		if source == "" {
			source = "pkg:golang/github.com/kumiki-scheduler/kumiki"
		}
		d.Resolved = []inTotoThing{{URI: source, Digest: map[string]string{"gitCommit": r.revision}}}
	}
	s.Predicate.RunDetails.Builder.ID = r.builder
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return r.write(statement, append(text, '\n'))
}

// checkProvenance compares the subjects of the statement with the files.
func checkProvenance(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, statement))
	if err != nil {
		return err
	}
	var s inTotoStatement
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	if s.Type != statementType || s.PredicateType != predicateType {
		return fmt.Errorf("%s has the types %q and %q", statement, s.Type, s.PredicateType)
	}
	all, err := sums(dir)
	if err != nil {
		return err
	}
	delete(all, statement)
	var wrong error
	for _, thing := range s.Subject {
		if all[thing.Name] != thing.Digest["sha256"] {
			wrong = errors.Join(wrong, fmt.Errorf("%s has the sum %q for %s, which has %q",
				statement, thing.Digest["sha256"], thing.Name, all[thing.Name]))
		}
		delete(all, thing.Name)
	}
	for _, name := range sortedKeys(all) {
		wrong = errors.Join(wrong, fmt.Errorf("%s does not mention %s", statement, name))
	}
	return wrong
}
