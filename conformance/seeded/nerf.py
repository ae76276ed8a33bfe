"""NeRF of a tabletop scene, one network, stratified sampling."""
import torch
import torch.nn as nn


class RayBank:
    def __init__(self, views, height, width, focal, device="cuda"):
        self.views, self.height, self.width, self.focal = views, height, width, focal
        self.rays = torch.zeros(views, height * width, 9, device=device)  # origin, direction, colour
        for view in range(views):
            self.rays[view, :, :6] = self.cast(view, device)

    def cast(self, view, device):
        v, u = torch.meshgrid(torch.arange(self.height, device=device), torch.arange(self.width, device=device),
                              indexing="ij")
        x = (u - self.width / 2) / self.focal
        y = -(v - self.height / 2) / self.focal
        direction = torch.stack([x, y, -torch.ones_like(x)], -1).view(-1, 3)
        angle = torch.tensor(6.283 * view / self.views, device=device)
        origin = torch.stack([angle.cos(), angle.sin(), torch.ones_like(angle)]) * 4
        return torch.cat([origin.expand_as(direction), direction], -1)

    def draw(self, count):
        rows = torch.randint(0, self.views * self.height * self.width, (count,), device=self.rays.device)
        return self.rays.view(-1, 9)[rows].cuda()


class Field(nn.Module):
    def __init__(self, bands=10, width=256, depth=8):
        super().__init__()
        self.register_buffer("bands", 2.0 ** torch.arange(bands))
        layers, size = [], 3 + 6 * bands
        for _ in range(depth):
            layers += [nn.Linear(size, width), nn.ReLU(inplace=True)]
            size = width
        self.trunk = nn.Sequential(*layers)
        self.density, self.colour = nn.Linear(width, 1), nn.Linear(width, 3)

    def forward(self, points):
        angles = (points[..., None] * self.bands).flatten(-2)
        h = self.trunk(torch.cat([points, angles.sin(), angles.cos()], -1))
        return self.density(h).relu().squeeze(-1), self.colour(h).sigmoid()


def render(field, rays, samples=64, near=2.0, far=6.0):
    origin, direction = rays[:, None, :3], rays[:, None, 3:6]
    depth = torch.linspace(near, far, samples, device=rays.device)
    depth = depth + torch.rand(len(rays), samples, device=rays.device) * (far - near) / samples
    sigma, rgb = field(origin + direction * depth[..., None])
    alpha = 1 - torch.exp(-sigma * (far - near) / samples)
    through = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[:, :-1]
    return ((alpha * through)[..., None] * rgb).sum(1)


bank = RayBank(views=72, height=800, width=800, focal=1100.0)
field = Field().cuda()
optimizer = torch.optim.Adam(field.parameters(), lr=5e-4)
for iteration in range(4):
    rays = bank.draw(2048)
    error = (render(field, rays) - rays[:, 6:]).square().mean()
    optimizer.zero_grad()
    error.backward()
    optimizer.step()
    if iteration % 2 == 0:
        print(iteration, error.item())
