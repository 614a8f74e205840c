// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/kumiki-scheduler/kumiki/tools/pack"
)

func runPush(ctx context.Context, args []string, out, progress io.Writer) error {
	f := flagSet("push", progress)
	image := f.String("image", "", "repository of the image, as registry.example/team/kumiki")
	charts := f.String("charts", "",
		"repository of charts, as registry.example/team/charts: users install oci://CHARTS/kumiki")
	dir, err := directory(f, args)
	if err != nil {
		return err
	}
	if *image == "" && *charts == "" {
		return errors.New("push wants --image, --charts or both")
	}
	if err := verify(dir, true, nil); err != nil {
		return fmt.Errorf("not pushed: %w", err)
	}
	for _, one := range []struct{ repository, below, pattern string }{
		{*image, "", "kumiki-image_*.oci.tar"}, {*charts, "/" + chartName, chartFiles + "_*.oci.tar"},
	} {
		if one.repository == "" {
			continue
		}
		reference, err := push(ctx, dir, one.pattern, one.repository+one.below)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, reference)
	}
	return nil
}

// push uploads the content of a layout under the tag that the layout has for it, and returns a reference with its
// digest.
func push(ctx context.Context, dir, pattern, repository string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		return "", errors.Join(err, fmt.Errorf("%d files %s in %s, want one", len(found), pattern, dir))
	}
	blobs, err := pack.ReadLayout(found[0])
	if err != nil {
		return "", err
	}
	unpacked, err := os.MkdirTemp("", "kumiki-push-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(unpacked)
	for file, content := range blobs {
		to := filepath.Join(unpacked, filepath.FromSlash(file))
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, content, 0o644)); err != nil {
			return "", err
		}
	}
	top, err := layout.ImageIndexFromPath(unpacked)
	if err != nil {
		return "", err
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return "", err
	}
	one := manifest.Manifests[0]
	tag, err := name.NewTag(repository + ":" + one.Annotations["org.opencontainers.image.ref.name"])
	if err != nil {
		return "", err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if one.MediaType.IsIndex() {
		index, err := top.ImageIndex(one.Digest)
		if err != nil {
			return "", err
		}
		err = remote.WriteIndex(tag, index, options...)
		return tag.String() + "@" + one.Digest.String(), err
	}
	img, err := top.Image(one.Digest)
	if err != nil {
		return "", err
	}
	err = remote.Write(tag, img, options...)
	return tag.String() + "@" + one.Digest.String(), err
}
