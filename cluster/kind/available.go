package kind

import (
	"context"
	"fmt"
)

// Available says whether a node could be made on this machine without fetching
// anything: an engine answers, it has a node image, and a container reaches a
// socket of this process in the folder. The error says what is lacking, see
// [Reason]; where there is no engine it comes at once. image and version are as
// for [Engine.ChooseImage].
func Available(ctx context.Context, image, version, socketDir string) (*Engine, string, error) {
	engine, err := FindEngine(ctx, "")
	if err != nil {
		return nil, "", err
	}
	image, present, err := engine.ChooseImage(ctx, image, version)
	if err != nil {
		return nil, "", err
	}
	if !present {
		return nil, "", fmt.Errorf("%s does not have the node image %s", engine, image)
	}
	_, err = engine.probe(ctx, image, socketDir)
	return engine, image, err
}
