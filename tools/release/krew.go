// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The parts of a plugin manifest of krew that are used (krew.sigs.k8s.io/docs/developer-guide/plugin-manifest).
type (
	krewPlugin struct {
		APIVersion string       `yaml:"apiVersion"`
		Kind       string       `yaml:"kind"`
		Metadata   krewMetadata `yaml:"metadata"`
		Spec       krewSpec     `yaml:"spec"`
	}
	krewMetadata struct {
		Name string `yaml:"name"`
	}
	krewSpec struct {
		Version     string         `yaml:"version"`
		Homepage    string         `yaml:"homepage,omitempty"`
		Short       string         `yaml:"shortDescription"`
		Description string         `yaml:"description"`
		Platforms   []krewPlatform `yaml:"platforms"`
	}
	krewPlatform struct {
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		} `yaml:"selector"`
		URI    string     `yaml:"uri"`
		SHA256 string     `yaml:"sha256"`
		Bin    string     `yaml:"bin"`
		Files  []krewFrom `yaml:"files"`
	}
	krewFrom struct {
		From string `yaml:"from"`
		To   string `yaml:"to"`
	}
)

// writeKrew writes the manifest of kubectl-kumiki. Without the address of the release its URIs are the names of the
// archives: krew installs that with --archive, and publishable refuses it.
func (r *release) writeKrew() error {
	p := krewPlugin{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin"}
	p.Metadata.Name = "kumiki"
	p.Spec = krewSpec{
		Version: r.version, Homepage: r.sourceURL, Short: "Explain why pods and gangs wait",
		Description: "Asks the kumiki scheduler why a pod or a gang waits, what would change that, and what\n" +
			"is in its queue. With --offline it evaluates a cluster that any scheduler runs, with\nrights to read.\n",
	}
	for _, a := range r.programs {
		if a.program != programs[0].name {
			continue
		}
		sum, err := sumOf(filepath.Join(r.out, a.archive))
		if err != nil {
			return err
		}
		goos, goarch, _ := strings.Cut(a.platform, "/")
		var k krewPlatform
		k.Selector.MatchLabels = map[string]string{"os": goos, "arch": goarch}
		k.URI, k.SHA256, k.Bin = a.archive, sum, "kubectl-kumiki"
		if r.url != "" {
			k.URI = strings.TrimSuffix(r.url, "/") + "/" + a.archive
		}
		k.Files = []krewFrom{{"kumiki", "kubectl-kumiki"}, {"LICENSE", "."}}
		p.Spec.Platforms = append(p.Spec.Platforms, k)
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(p); err != nil {
		return err
	}
	return r.write(krewFile, b.Bytes())
}

// checkKrew compares the manifest with the archives. If it is for publication, its URIs must be addresses.
func checkKrew(dir string, text []byte, publication bool) error {
	var p krewPlugin
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&p); err != nil {
		return fmt.Errorf("%s: %w", krewFile, err)
	}
	for _, k := range p.Spec.Platforms {
		if publication && !strings.HasPrefix(k.URI, "https://") {
			return fmt.Errorf("%s refers to %q, which is not an address: build the release with --url "+
				"(make release RELEASE_URL=…)", krewFile, k.URI)
		}
		archive := k.URI[strings.LastIndex(k.URI, "/")+1:]
		sum, err := sumOf(filepath.Join(dir, archive))
		if err != nil {
			return fmt.Errorf("%s: %w", krewFile, err)
		}
		if sum != k.SHA256 {
			return fmt.Errorf("%s has the sum %s for %s, which has %s", krewFile, k.SHA256, archive, sum)
		}
	}
	return nil
}
