// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"go.yaml.in/yaml/v3"

	"github.com/kumiki-scheduler/kumiki/tools/pack"
	"github.com/kumiki-scheduler/kumiki/tools/spdx"
)

// Media types of a chart in a registry (helm.sh/docs/topics/registries).
const (
	chartConfig  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContent types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// chartDir is the chart in the source tree, chartName its name.
const (
	chartDir  = "deploy/helm/kumiki"
	chartName = "kumiki"
)

func (r *release) chartVersion() string { return strings.TrimPrefix(r.version, "v") }
func (r *release) chartArchive() string { return chartFiles + "_" + r.version + ".tgz" }
func (r *release) chartLayout() string  { return chartFiles + "_" + r.version + ".oci.tar" }

// packChart writes the chart twice: as an archive, for `helm install FILE`, and as an OCI layout, for registries. Its
// version and the version of the image that it installs are those of the release.
func (r *release) packChart() error {
	fmt.Fprintln(r.progress, "the chart")
	entries, description, err := r.chartEntries()
	if err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	var archive bytes.Buffer
	if err := pack.WriteTarGz(&archive, r.created, entries); err != nil {
		return err
	}
	var parts []spdx.Content
	for _, e := range entries {
		parts = append(parts, spdx.Content{Name: e.Name, Data: e.Data})
	}
	sbom, err := spdx.Files(r.about("kumiki chart"), archive.Bytes(), parts)
	if err != nil {
		return err
	}
	img, err := r.chartImage(description, archive.Bytes())
	if err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	if err := errors.Join(r.write(r.chartArchive(), archive.Bytes()),
		r.write(chartFiles+"_"+r.version+".spdx.json", sbom),
		pack.WriteLayout(filepath.Join(r.out, r.chartLayout()), r.chartVersion(), img)); err != nil {
		return err
	}
	r.chartSum, err = digestOf(filepath.Join(r.out, r.chartLayout()))
	return err
}

// chartEntries reads the chart, with the versions of the release in Chart.yaml, which is also returned decoded.
func (r *release) chartEntries() (entries []pack.Entry, description map[string]any, err error) {
	root := filepath.Join(r.source, chartDir)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if name == "Chart.yaml" {
			if content, description, err = r.chartDescription(content); err != nil {
				return err
			}
		}
		name = chartName + "/" + filepath.ToSlash(name)
		entries = append(entries, pack.Entry{Name: name, Mode: 0o644, Data: content})
		return nil
	})
	if err == nil && description == nil {
		err = fmt.Errorf("%s has no Chart.yaml", root)
	}
	slices.SortFunc(entries, func(a, b pack.Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries, description, err
}

// chartDescription sets the versions in Chart.yaml and leaves everything else as it is.
func (r *release) chartDescription(text []byte) (changed []byte, decoded map[string]any, err error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, nil, err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, nil, errors.New("Chart.yaml is not a mapping")
	}
	fields := document.Content[0]
	set(fields, "version", r.chartVersion())
	set(fields, "appVersion", r.version) // the tag of the image
	if err := fields.Decode(&decoded); err != nil {
		return nil, nil, err
	}
	changed, err = yaml.Marshal(&document)
	return changed, decoded, err
}

func set(fields *yaml.Node, key, value string) {
	for n := 0; n+1 < len(fields.Content); n += 2 {
		if fields.Content[n].Value == key {
			fields.Content[n+1].SetString(value)
			return
		}
	}
	var k, v yaml.Node
	k.SetString(key)
	v.SetString(value)
	fields.Content = append(fields.Content, &k, &v)
}

// artifact is an OCI image with a configuration of its own format.
type artifact struct {
	manifest, config []byte
	layer            v1.Layer
}

// MediaType implements partial.CompressedImageCore.
func (a artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// RawManifest implements partial.CompressedImageCore.
func (a artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

// RawConfigFile implements partial.CompressedImageCore.
func (a artifact) RawConfigFile() ([]byte, error) { return a.config, nil }

// LayerByDigest implements partial.CompressedImageCore.
func (a artifact) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) { return a.layer, nil }

// chartImage returns the chart as helm push would upload it, with the time of the commit instead of the present.
func (r *release) chartImage(description map[string]any, archive []byte) (v1.Image, error) {
	config, err := json.Marshal(description)
	if err != nil {
		return nil, err
	}
	layer := static.NewLayer(archive, chartContent)
	digest, err := layer.Digest()
	if err != nil {
		return nil, err
	}
	ofConfig, size, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{
		"org.opencontainers.image.title":   chartName,
		"org.opencontainers.image.version": r.chartVersion(),
		"org.opencontainers.image.created": r.created.Format(time.RFC3339),
	}
	if text, is := description["description"].(string); is {
		annotations["org.opencontainers.image.description"] = text
	}
	if r.sourceURL != "" {
		annotations["org.opencontainers.image.source"] = r.sourceURL
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config:      v1.Descriptor{MediaType: chartConfig, Size: size, Digest: ofConfig},
		Layers:      []v1.Descriptor{{MediaType: chartContent, Size: int64(len(archive)), Digest: digest}},
		Annotations: annotations,
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(artifact{manifest, config, layer})
}

// digestOf returns the digest under which a registry will have the content of a layout.
func digestOf(layout string) (string, error) {
	blobs, err := pack.ReadLayout(layout)
	if err != nil {
		return "", err
	}
	var top v1.IndexManifest
	if err := blobs.Read("index.json", &top); err != nil {
		return "", err
	}
	if len(top.Manifests) != 1 {
		return "", fmt.Errorf("%s contains %d images, want one", layout, len(top.Manifests))
	}
	return top.Manifests[0].Digest.String(), nil
}
