// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/kumiki-scheduler/kumiki/tools/pack"
)

func runVerify(args []string, out, progress io.Writer) error {
	f := flagSet("verify", progress)
	file := f.String("key", "", "file with the public key in PEM; without it, signatures are not verified")
	publication := f.Bool("publication", false, "also require addresses instead of placeholders")
	dir, err := directory(f, args)
	if err != nil {
		return err
	}
	var k *key
	if *file != "" {
		public, err := readPublic(*file)
		if err != nil {
			return err
		}
		k = &public
	}
	if err := verify(dir, *publication, k); err != nil {
		return err
	}
	names, err := files(dir)
	if err != nil {
		return err
	}
	what := "sums"
	if k != nil {
		what = "sums and signatures"
	}
	fmt.Fprintf(out, "%s: %d files, %s are correct\n", dir, len(names), what)
	return nil
}

// verify compares everything in a release with everything else, and with a public key if there is one.
func verify(dir string, publication bool, k *key) error {
	listed, err := readSums(dir)
	if err != nil {
		return err
	}
	there, err := sums(dir)
	if err != nil {
		return err
	}
	var wrong error
	for _, name := range sortedKeys(there) {
		switch {
		case listed[name] == "":
			wrong = errors.Join(wrong, fmt.Errorf("%s does not list %s", sumsFile, name))
		case listed[name] != there[name]:
			wrong = errors.Join(wrong,
				fmt.Errorf("%s has the sum %s, %s says %s", name, there[name], sumsFile, listed[name]))
		}
	}
	for _, name := range sortedKeys(listed) {
		if there[name] == "" {
			wrong = errors.Join(wrong, fmt.Errorf("%s is missing", name))
		}
	}
	if wrong != nil {
		return wrong
	}
	if err := checkProvenance(dir); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, krewFile))
	if err != nil {
		return err
	}
	if err := checkKrew(dir, text, publication); err != nil {
		return err
	}
	for _, name := range sortedKeys(there) {
		if strings.HasSuffix(name, ".oci.tar") {
			if _, err := pack.ReadLayout(filepath.Join(dir, name)); err != nil { // every blob by its digest
				return err
			}
		}
	}
	if k != nil {
		return checkSignatures(dir, *k)
	}
	return nil
}
