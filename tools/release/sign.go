// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// payloadType is that of in-toto statements in envelopes.
const payloadType = "application/vnd.in-toto+json"

func runSign(args []string, out, progress io.Writer) error {
	f := flagSet("sign", progress)
	file := f.String("key", "", "file with the private key: ECDSA or Ed25519, PKCS #8 in PEM")
	dir, err := directory(f, args)
	if err != nil {
		return err
	}
	if *file == "" {
		return errors.New("sign wants --key; an identity without a key signs with cosign, see " +
			".github/workflows/release.yml")
	}
	if err := verify(dir, false, nil); err != nil {
		return fmt.Errorf("not signed: %w", err)
	}
	block, err := readPEM(*file)
	if err != nil {
		return err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block)
	if err != nil {
		return fmt.Errorf("%s: %w", *file, err)
	}
	private, is := parsed.(crypto.Signer)
	if !is {
		return fmt.Errorf("%s: a key of type %T cannot sign", *file, parsed)
	}
	k := key{public: private.Public(), private: private}
	text, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil {
		return err
	}
	sig, err := k.Sign(context.Background(), text)
	if err != nil {
		return err
	}
	wrapped, err := wrap(dir, k)
	if err != nil {
		return err
	}
	encoded := []byte(base64.StdEncoding.EncodeToString(sig) + "\n")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, signature), encoded, 0o644),
		os.WriteFile(filepath.Join(dir, envelope), wrapped, 0o644)); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n%s\n", filepath.Join(dir, signature), filepath.Join(dir, envelope))
	return nil
}

// wrap puts the provenance into a signed envelope, one line of JSON.
func wrap(dir string, k key) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(dir, statement))
	if err != nil {
		return nil, err
	}
	signer, err := dsse.NewEnvelopeSigner(k)
	if err != nil {
		return nil, err
	}
	e, err := signer.SignPayload(context.Background(), payloadType, text)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(e)
	return append(line, '\n'), err
}

// checkSignatures verifies the signature of SHA256SUMS and the envelope, whose payload must be the statement.
func checkSignatures(dir string, k key) error {
	text, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil {
		return err
	}
	encoded, err := os.ReadFile(filepath.Join(dir, signature))
	if err != nil {
		return err
	}
	sig, err := base64.StdEncoding.DecodeString(string(encoded))
	if err != nil {
		return fmt.Errorf("%s: %w", signature, err)
	}
	if err := k.Verify(context.Background(), text, sig); err != nil {
		return fmt.Errorf("%s: %w", signature, err)
	}
	line, err := os.ReadFile(filepath.Join(dir, envelope))
	if err != nil {
		return err
	}
	var e dsse.Envelope
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("%s: %w", envelope, err)
	}
	verifier, err := dsse.NewEnvelopeVerifier(k)
	if err != nil {
		return err
	}
	if _, err := verifier.Verify(context.Background(), &e); err != nil {
		return fmt.Errorf("%s: %w", envelope, err)
	}
	payload, err := e.DecodeB64Payload()
	if err != nil {
		return fmt.Errorf("%s: %w", envelope, err)
	}
	plain, err := os.ReadFile(filepath.Join(dir, statement))
	if err != nil {
		return err
	}
	if e.PayloadType != payloadType || string(payload) != string(plain) {
		return fmt.Errorf("%s does not contain %s", envelope, statement)
	}
	return nil
}

// readPublic reads a public key.
func readPublic(file string) (key, error) {
	block, err := readPEM(file)
	if err != nil {
		return key{}, err
	}
	public, err := x509.ParsePKIXPublicKey(block)
	if err != nil {
		return key{}, fmt.Errorf("%s: %w", file, err)
	}
	return key{public: public}, nil
}

func readPEM(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is not PEM", file)
	}
	return block.Bytes, nil
}

// key signs and verifies, in the form that cosign and openssl use: ECDSA signs the SHA-256 sum of the data and writes
// ASN.1, Ed25519 signs the data. It implements the interfaces of dsse.
type key struct {
	public  crypto.PublicKey
	private crypto.Signer // nil if it verifies only
}

var errSignature = errors.New("the signature is not of this key, or not of this content")

// Sign implements dsse.Signer.
func (k key) Sign(_ context.Context, data []byte) ([]byte, error) {
	switch k.public.(type) {
	case ed25519.PublicKey:
		return k.private.Sign(rand.Reader, data, crypto.Hash(0))
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(data)
		return k.private.Sign(rand.Reader, sum[:], crypto.SHA256)
	}
	return nil, fmt.Errorf("keys of type %T are not supported, use ECDSA or Ed25519", k.public)
}

// Verify implements dsse.Verifier.
func (k key) Verify(_ context.Context, data, sig []byte) error {
	ok := false
	switch public := k.public.(type) {
	case ed25519.PublicKey:
		ok = ed25519.Verify(public, data, sig)
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(data)
		ok = ecdsa.VerifyASN1(public, sum[:], sig)
	default:
		return fmt.Errorf("keys of type %T are not supported, use ECDSA or Ed25519", k.public)
	}
	if !ok {
		return errSignature
	}
	return nil
}

// KeyID implements dsse.Verifier: the sum of the public key.
func (k key) KeyID() (string, error) {
	der, err := x509.MarshalPKIXPublicKey(k.public)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("SHA256:%x", sha256.Sum256(der)), nil
}

// Public implements dsse.Verifier.
func (k key) Public() crypto.PublicKey { return k.public }
