package view

import (
	"encoding/base64"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const tokenVersion = "view/v1"

// token is what a continue parameter says. Clients treat it as opaque; it
// grants nothing, so it needs no signature.
type token struct {
	Version string `json:"v"`
	// Number names the snapshot; 0 is the newest state.
	Number uint64 `json:"n,omitempty"`
	// Namespace and Name are the last object that was returned.
	Namespace string `json:"s,omitempty"`
	Name      string `json:"k"`
	// Remaining is how many objects follow it; only exact without selectors.
	Remaining int64 `json:"r,omitempty"`
}

func (t token) key() *Key { return &Key{t.Namespace, t.Name} }

func (t token) encode() string {
	data, err := json.Marshal(t)
	if err != nil { // a struct of strings and integers
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

func decodeToken(encoded, namespace string) (token, error) {
	invalid := func(reason string) (token, error) {
		return token{}, apierrors.NewBadRequest("continue key is not valid: " + reason)
	}
	data, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return invalid(err.Error())
	}
	var t token
	if err := json.Unmarshal(data, &t); err != nil {
		return invalid(err.Error())
	}
	switch {
	case t.Version != tokenVersion:
		return invalid("it is not one of this resource's tokens")
	case t.Name == "":
		return invalid("it names no object")
	case t.Remaining < 0:
		return invalid("it has a negative rest")
	case namespace != "" && t.Namespace != namespace:
		return invalid("it is for another namespace")
	}
	return t, nil
}
