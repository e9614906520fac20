"""A small perceptron on random data, ten steps: an ordinary PyTorch script that knows nothing of Shardscope."""

import torch


class Perceptron(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(layers))
        self.activation = torch.nn.ReLU()

    def forward(self, x):
        for layer in self.layers:
            x = self.activation(layer(x))
        return x


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Perceptron(width=256, layers=3).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.utils.data.TensorDataset(torch.randn(320, 256), torch.randn(320, 256))
    for inputs, targets in torch.utils.data.DataLoader(data, batch_size=32):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs.to(device)), targets.to(device))
        loss.backward()
        optimizer.step()
    print("loss {:.6f}".format(loss.item()))


if __name__ == "__main__":
    main()
