// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"helm.sh/helm/v3/pkg/chart/loader"
	helmregistry "helm.sh/helm/v3/pkg/registry"
)

// keys writes a pair of keys and returns the files.
func keys(t *testing.T, private crypto.Signer) (privateFile, publicFile string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der []byte, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	privateFile = write("key", "PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(private.Public())
	return privateFile, write("key.pub", "PUBLIC KEY", der, err)
}

func release1(line ...string) error { return run(context.Background(), line, io.Discard, io.Discard) }

// TestASignedReleaseIsVerified: with the right key nothing is wrong, with another key something is, and so is every
// single changed, missing or additional file. It catches a verification that leaves out a kind of file.
func TestASignedReleaseIsVerified(t *testing.T) {
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	dir := built(t, "--platforms", "linux/amd64")
	_, other := keys(t, edwards)
	for _, signer := range []crypto.Signer{edwards, curve} {
		private, public := keys(t, signer)
		if err := release1("sign", "--key", private, dir); err != nil {
			t.Fatalf("%T: %v", signer, err)
		}
		if err := release1("verify", "--key", public, dir); err != nil {
			t.Fatalf("%T: %v", signer, err)
		}
		if err := release1("verify", dir); err != nil {
			t.Errorf("%T: without a key: %v", signer, err)
		}
	}
	if err := release1("verify", "--key", other, dir); err == nil {
		t.Error("a key that signed nothing here verifies the release")
	}
	_, public := keys(t, curve)
	for file, content := range read(t, dir) {
		path := filepath.Join(dir, file)
		changed := []byte(string(content))
		changed[len(changed)/2] ^= 1
		for what, act := range map[string]func() error{
			"changed": func() error { return os.WriteFile(path, changed, 0o644) },
			"missing": func() error { return os.Remove(path) },
		} {
			if err := act(); err != nil {
				t.Fatal(err)
			}
			if err := release1("verify", "--key", public, dir); err == nil {
				t.Errorf("%s is %s, and verify accepts it", file, what)
			}
			if err := os.WriteFile(path, content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	additional := filepath.Join(dir, "kumiki_v0.2.0_plan9_386.tar.gz")
	if err := os.WriteFile(additional, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := release1("verify", dir); err == nil {
		t.Error("verify accepts a file that is in no list")
	}
	// With a list that names it, the provenance still does not.
	if err := writeSums(dir); err != nil {
		t.Fatal(err)
	}
	if err := release1("verify", dir); err == nil || !strings.Contains(err.Error(), statement) {
		t.Errorf("a file that the provenance does not mention: %v", err)
	}
}

// TestAPlaceholderIsNotPublished: without the address of the release, the manifest for krew refers to files. It catches
// a publication with addresses that lead nowhere.
func TestAPlaceholderIsNotPublished(t *testing.T) {
	dir := built(t, "--platforms", "linux/amd64")
	for _, line := range [][]string{{"verify", "--publication", dir}, {"push", "--image", "registry.invalid/kumiki", dir}} {
		if err := release1(line...); err == nil || !strings.Contains(err.Error(), "RELEASE_URL") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// TestPush uploads to a registry and reads it back: the image with the digest of the notes, the chart with helm's own
// client and loader. It catches media types that helm does not know, and a chart with another version than the release.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	dir := built(t, "--platforms", "linux/amd64,linux/arm64", "--url", "https://releases.example/v0.2.0")
	var out strings.Builder
	err := run(context.Background(), []string{"push", "--image", host + "/team/kumiki", "--charts", host + "/charts", dir}, &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	notes := string(read(t, dir)[notesFile])
	tag, err := name.NewTag(host + "/team/kumiki:v0.2.0")
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(tag)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil || !strings.Contains(notes, digest.String()) || !strings.Contains(out.String(), tag.String()+"@"+digest.String()) {
		t.Errorf("%v: digest %s; push printed\n%sand the notes are\n%s", err, digest, out.String(), notes)
	}
	client, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP())
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := client.Pull(host + "/charts/kumiki:0.2.0")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(notes, pulled.Manifest.Digest) {
		t.Errorf("the chart has the digest %s, the notes are\n%s", pulled.Manifest.Digest, notes)
	}
	chart, err := loader.LoadArchive(strings.NewReader(string(pulled.Chart.Data)))
	if err != nil {
		t.Fatal(err)
	}
	if m := chart.Metadata; m.Name != "kumiki" || m.Version != "0.2.0" || m.AppVersion != "v0.2.0" || len(chart.Templates) == 0 || chart.Schema == nil {
		t.Errorf("the chart is %+v with %d templates", m, len(chart.Templates))
	}
}
