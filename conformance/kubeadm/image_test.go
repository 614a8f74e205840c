// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// repository is the root of the source tree.
const repository = "../.."

// image is an unpacked image.
type image struct {
	rootfs     string
	user       string
	entrypoint []string
	env        []string
}

// run returns a container of the image with a command instead of its entry point, as `command` in a pod sets one.
func (i image) run(t *testing.T, command ...string) container {
	t.Helper()
	return container{Rootfs: copyOf(t, i.rootfs), Command: command, Env: i.env, User: i.user}
}

// goBuild builds a program with the linker flags that the Makefile uses.
func goBuild(dir, out, pkg string, env []string, flags ...string) error {
	ldflags, err := os.ReadFile(filepath.Join(repository, "localcluster/ldflags.txt"))
	if err != nil {
		return err
	}
	args := append([]string{"build", "-buildvcs=false", "-ldflags", strings.TrimSpace(string(ldflags)), "-o", out}, flags...)
	c := exec.Command("go", append(args, pkg)...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, text)
	}
	return nil
}

// static builds what an image contains: a program without libraries, from one module alone.
func static(module, out, pkg string) error {
	return goBuild(filepath.Join(repository, module), out, pkg, []string{"CGO_ENABLED=0", "GOWORK=off"}, "-trimpath")
}

// scratch is the directory of unpacked images. TestMain removes it.
var scratch string

// kumikiImage returns kumiki's image for this machine, packed with the steps of `make image`, and unpacked.
func kumikiImage(t *testing.T) image {
	t.Helper()
	i, err := kumikiImageOnce()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

var kumikiImageOnce = sync.OnceValues(func() (image, error) {
	dir, err := os.MkdirTemp(scratch, "kumiki-")
	if err != nil {
		return image{}, err
	}
	binary := filepath.Join(dir, "kumiki")
	if err := static(".", binary, "./cmd/kumiki"); err != nil {
		return image{}, err
	}
	for _, args := range [][]string{
		{"build", "--version", "test", "--out", dir, "--binary", "linux/" + runtime.GOARCH + "=" + binary},
		{"unpack", filepath.Join(dir, "kumiki.oci.tar"), filepath.Join(dir, "bundle")},
	} {
		c := exec.Command("go", append([]string{"run", "-buildvcs=false", "./image"}, args...)...)
		c.Dir, c.Env = filepath.Join(repository, "tools"), append(os.Environ(), "GOWORK=off")
		if text, err := c.CombinedOutput(); err != nil {
			return image{}, fmt.Errorf("image %s: %w\n%s", args[0], err, text)
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "bundle/config.json"))
	if err != nil {
		return image{}, err
	}
	var file struct {
		Config struct {
			User       string
			Entrypoint []string
			Env        []string
		} `json:"config"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return image{}, err
	}
	return image{filepath.Join(dir, "bundle/rootfs"), file.Config.User, file.Config.Entrypoint, file.Config.Env}, nil
})

// upstreamImage returns what the image registry.k8s.io/kube-scheduler has: /usr/local/bin/kube-scheduler and no user.
func upstreamImage(t *testing.T) image {
	t.Helper()
	rootfs := t.TempDir()
	bin := filepath.Join(rootfs, "usr/local/bin")
	if err := errors.Join(os.MkdirAll(bin, 0o755), os.Mkdir(filepath.Join(rootfs, "tmp"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := static("conformance", filepath.Join(bin, "kube-scheduler"), "./cmd/kube-scheduler"); err != nil {
		t.Fatal(err)
	}
	return image{rootfs: rootfs, env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}
}
